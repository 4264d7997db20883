"""`kill -9` of the server and of the caller, over HTTP, at moments that nobody chose."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from random import Random

import anyio
import pytest

from contract_tests.core.crash_http import SERVER_IS_GONE, run_caller, run_server
from contract_tests.core.crash_oracle import complaints_about
from contract_tests.core.crash_world import Plan
from contract_tests.requirements import requirement

SECONDS = 30
LONGEST_WAIT = 0.25
"""Before the next one is killed; an undisturbed run takes about as long."""


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["contract_tests.core.crash_http"])
    return context


class World:
    """The processes of one run."""

    def __init__(self, context: ForkServerContext, directory: Path, plan: Plan) -> None:
        self._context = context
        self._directory = str(directory)
        self._plan = plan
        self.server, self._url = self._start_server()
        self.caller = self._start_caller()

    def kill_server(self) -> None:
        """The caller gets a clear error at once; another server and another caller go on."""
        self.server.kill()
        self.server.join(SECONDS)
        self.caller.join(SECONDS)
        assert self.caller.exitcode in (0, SERVER_IS_GONE)
        self.server, self._url = self._start_server()
        self.caller = self._start_caller()

    def kill_caller(self) -> None:
        self.caller.kill()
        self.caller.join(SECONDS)
        self.caller = self._start_caller()

    def _start_server(self) -> tuple[ForkServerProcess, str]:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=run_server, args=(self._directory, self._plan, theirs))
        process.start()
        theirs.close()
        assert ours.poll(SECONDS), "the server does not start"
        return process, ours.recv()

    def _start_caller(self) -> ForkServerProcess:
        process = self._context.Process(target=run_caller, args=(self._directory, self._plan, self._url))
        process.start()
        return process


@contextmanager
def running(context: ForkServerContext, directory: Path, plan: Plan) -> Iterator[World]:
    world = World(context, directory, plan)
    try:
        yield world
    finally:
        world.server.kill()
        world.caller.kill()
        world.server.join(SECONDS)


@requirement("journal:crash-points")
@pytest.mark.parametrize("seed", range(20))
def test_killing_server_and_caller_breaks_no_promise(processes: ForkServerContext, tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    plan = Plan(
        resume=chance.choice(["exact", "continued", "none"]),
        style=chance.choice(["emit", "ask"]),
        answers=[chance.randrange(3) for _ in range(5)],
        batch=chance.randint(1, 2),
        declines=True,
    )
    with running(processes, tmp_path, plan) as world:
        for _ in range(3):
            world.caller.join(chance.uniform(0, LONGEST_WAIT))
            if world.caller.exitcode is not None:
                break
            chance.choice([world.kill_server, world.kill_caller])()
        world.caller.join(SECONDS)
        assert world.caller.exitcode == 0
    assert anyio.run(complaints_about, tmp_path, plan) == []
