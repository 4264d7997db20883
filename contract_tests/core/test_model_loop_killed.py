"""The proof that a bare model resumes exactly: its process is killed at every point of a turn with three rounds."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from multiprocessing.context import ForkServerContext
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio.to_thread
import pytest

from contract_tests.core.crash_oracle import check_accepted_answers, check_requests, opened, read_streams, story_in
from contract_tests.core.crash_world import Death, Plan
from contract_tests.core.model_lives import CALLS, ByHistory, Life, run_life
from contract_tests.requirements import requirement
from harness.scripted_model import ScriptedModel, open_scripted_model

KILLED = -9
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
PATHS = {"openai:chat": "/v1", "anthropic": ""}
SWEPT = list(PATHS) if os.environ.get("HARNESS_SOAK") else ["openai:chat"]
"""The loop is the same for all: `make soak` tries them all."""


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Every life is a fork of a process that has everything imported: a new process in milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["contract_tests.core.model_lives", "openai", "openai.resources.chat", "httpx2"])
    return context


@pytest.fixture
def directory() -> Iterator[Path]:
    """In memory where there is such a place: what a killed process wrote is there, and no disk is waited for."""
    with TemporaryDirectory(dir=MEMORY) as name:
        yield Path(name)


@asynccontextmanager
async def model_by_history(hangs_in: int | None = None) -> AsyncGenerator[tuple[ScriptedModel, ByHistory]]:
    async with open_scripted_model([{"text": "never"}]) as model:
        playback = ByHistory(hangs_in)
        model._playback = playback  # pyright: ignore[reportPrivateUsage]
        yield model, playback


async def live(context: ForkServerContext, directory: Path, life: Life) -> int | None:
    """How the process ended."""
    process = context.Process(target=run_life, args=(str(directory), life))
    process.start()
    await anyio.to_thread.run_sync(process.join, 60)
    return process.exitcode


async def complaints(directory: Path, model: ScriptedModel) -> list[str]:
    """What was promised and not kept, by the host's diary, the journal and what the model was told."""
    story = await story_in(directory)
    read_streams(story)
    check_requests(story)
    check_accepted_answers(story, Plan())
    ended = [item for item in story.streams["t1"].values() if item["kind"] == "turn_ended"]
    story.expect([item["status"] for item in ended] == ["completed"], f"the turn ended {ended}")
    answers = {request["call_id"]: f"answer to {request['request_id']}" for request in opened(story)}
    story.expect(sorted(answers) == CALLS[:4], f"the host was asked for {sorted(answers)}")
    told = model.requests[-1]
    given = [past.call_id for past in told.model_request.past_calls]
    story.expect(given == CALLS, f"the model's history has the calls {given}")
    for past in told.model_request.past_calls:
        results = len(re.findall(rf'"(?:tool_call_id|tool_use_id)":\s?"{past.call_id}"', told.body_text))
        story.expect(results == 1, f"{past.call_id} has {results} results")
        story.expect(
            past.result == answers.get(past.call_id, past.result) and past.result is not None,
            f"the model was told '{past.result}' for {past.call_id}",
        )
    refused = [request.body_text for request in [*model.requests, *model.side_requests] if request.entry is None]
    story.expect(not refused, f"the model refused {refused}")
    return story.complaints


def writes(directory: Path) -> int:
    facts = map(json.loads, (directory / "diary.jsonl").read_text().splitlines())
    return max(fact["number"] for fact in facts if fact["what"] == "write")


@requirement("model-loop:resume:killed")
@pytest.mark.parametrize("row", SWEPT)
async def test_a_turn_whose_process_is_killed_at_any_write_is_finished_by_the_next(
    processes: ForkServerContext, directory: Path, row: str
) -> None:
    async with model_by_history() as (model, _):
        life = Life(row, model.url + PATHS[row])
        never = Death(-1, "before")
        undisturbed = directory / "undisturbed"
        undisturbed.mkdir()
        assert await live(processes, undisturbed, replace(life, death=never)) == 0
        assert await complaints(undisturbed, model) == []
        count = writes(undisturbed)
        found: dict[Death, list[str]] = {}
        for death in (Death(number, when) for number in range(1, count + 1) for when in ("before", "after")):
            place = directory / f"{death.at}-{death.when}"
            place.mkdir()
            model.requests.clear()
            ended = await live(processes, place, replace(life, death=death))
            if ended == 0 and death.at > count - 3:
                continue  # batches go by time: this life wrote less often than the undisturbed one
            assert ended == KILLED, death
            assert await live(processes, place, replace(life, death=never)) == 0, death
            found[death] = await complaints(place, model)
    print(f"{row}: {count} writes, {len(found)} kill points, each finished by a new process")
    assert count >= 12
    assert {death: lines for death, lines in found.items() if lines} == {}


@requirement("model-loop:resume:killed")
@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("row", PATHS)
async def test_a_turn_whose_process_is_killed_while_the_model_speaks_is_finished_by_the_next(
    processes: ForkServerContext, directory: Path, row: str, number: int
) -> None:
    async with model_by_history(hangs_in=number) as (model, playback):
        life = Life(row, model.url + PATHS[row])
        assert await live(processes, directory, replace(life, dies_in=number)) == KILLED
        playback.hangs_in = None
        assert await live(processes, directory, life) == 0
        assert await complaints(directory, model) == []
