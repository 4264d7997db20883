"""The proof: a process that is killed at any of its writes breaks no promise, whatever happened in which order."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterator
from multiprocessing.context import ForkServerContext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract_tests.core.crash_oracle import complaints_about
from contract_tests.core.crash_world import Death, Plan, run_life
from contract_tests.requirements import requirement

SOAK = bool(os.environ.get("HARNESS_SOAK"))
"""`make soak` sets it: many more runs."""
KILLED = -9
VARIANTS = [
    ("exact", False),
    ("exact", True),
    ("continued", False),
    ("none", False),
    ("continued", True),
    ("none", True),
]
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Every life is a fork of a process that has everything imported: a new process in milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["contract_tests.core.crash_world"])
    return context


@pytest.fixture
def directory() -> Iterator[Path]:
    """In memory where there is such a place: what a killed process wrote is there, and no disk is waited for."""
    with TemporaryDirectory(dir=MEMORY) as name:
        yield Path(name)


def run(context: ForkServerContext, directory: Path, plan: Plan, *deaths: Death) -> list[str]:
    """Lives that end as planned, and a last one that finishes; what the oracle has to complain about."""
    for number, death in enumerate((*deaths, None)):
        process = context.Process(target=run_life, args=(str(directory), plan, number == 0, death))
        process.start()
        process.join(60)
        if process.exitcode == 0 and death is not None:
            break  # all was done before it came to that write
        if process.exitcode != (0 if death is None else KILLED):
            return [f"life {number} ended with {process.exitcode}"]
    return anyio.run(complaints_about, directory, plan)


def writes(directory: Path) -> int:
    facts = map(json.loads, (directory / "diary.jsonl").read_text().splitlines())
    return max(fact["number"] for fact in facts if fact["what"] == "write")


def was_killed(directory: Path) -> int:
    return (directory / "diary.jsonl").read_text().count('"killed"')


def every_point(
    context: ForkServerContext, directory: Path, plan: Plan, *, until_found: bool = False
) -> tuple[int, dict[Death, list[str]]]:
    """How many writes an undisturbed run has, and what is found when the process dies at each of them."""
    undisturbed = directory / "undisturbed"
    undisturbed.mkdir()
    assert run(context, undisturbed, plan) == [] or plan.fault is not None
    count = writes(undisturbed)
    found: dict[Death, list[str]] = {}
    for number in range(1, count + 1):
        for when in ("before", "after"):
            death = Death(number, when)
            place = directory / f"{number}-{when}"
            place.mkdir()
            found[death] = run(context, place, plan, death)
            assert was_killed(place) == 1
            if found[death] and until_found:
                return count, found
    return count, found


@requirement("journal:crash-points")
@pytest.mark.parametrize(("resume", "is_late"), VARIANTS if SOAK else VARIANTS[:4])
def test_no_crash_point_of_the_scenario_breaks_a_promise(
    processes: ForkServerContext, directory: Path, resume: str, is_late: bool
) -> None:
    count, found = every_point(processes, directory, Plan(resume=resume, is_late=is_late))
    print(f"{resume}: {count} writes, {len(found)} crash points, each reopened by a new process")
    assert len(found) == 2 * count
    assert {death: complaints for death, complaints in found.items() if complaints} == {}
    assert count >= 20


@requirement("journal:crash-points:finds-planted-faults")
@pytest.mark.parametrize("fault", ["release before append", "accept before append"])
@pytest.mark.parametrize("resume", ["exact", "continued"])
def test_a_build_that_promises_before_it_writes_is_found_out(
    processes: ForkServerContext,
    directory: Path,
    resume: str,
    fault: Literal["release before append", "accept before append"],
) -> None:
    _, found = every_point(processes, directory, Plan(resume=resume, fault=fault, pauses=(3,)), until_found=True)
    assert any(found.values())


plans = st.builds(
    Plan,
    resume=st.sampled_from(["exact", "continued", "none"]),
    style=st.sampled_from(["emit", "ask"]),
    answers=st.lists(st.integers(0, 2), max_size=5).map(tuple),
    batch=st.integers(1, 3),
    cancels_after=st.integers(0, 2),
    pauses=st.lists(st.integers(0, 12), min_size=1, max_size=4).map(tuple),
    is_late=st.booleans(),
)
deaths = st.lists(st.builds(Death, st.integers(1, 24), st.sampled_from(["before", "after"])), min_size=1, max_size=3)


@requirement("journal:crash-points")
@settings(max_examples=2000 if SOAK else 50)
@given(plan=plans, deaths=deaths)
def test_no_interleaving_breaks_a_promise_however_often_the_process_dies(
    processes: ForkServerContext, plan: Plan, deaths: list[Death]
) -> None:
    with TemporaryDirectory(dir=MEMORY) as directory:
        assert run(processes, Path(directory), plan, *deaths) == []
