"""The loop guard: one pure count of repetitions, shared by the model loop and the orchestrator.

A model that repeats itself without progress first hears so, then the turn ends. Identical calls of one round are never
counted against each other: a model may roll two dice at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.errors import LoopGuard

SAME_RESULT_ROUNDS = 3
SAME_FAILURE_ROUNDS = 2
FAILED_ROUNDS = 3

Repetition: TypeAlias = Literal["repeated_call", "repeated_error"]


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A call with its own result, before the guard added anything to it."""

    tool_name: str
    arguments_json: str
    result: str
    is_error: bool


Round: TypeAlias = Sequence[FinishedCall]


def repetition(rounds: Sequence[Round], call: FinishedCall) -> Repetition | None:
    """What the model must hear about this call of the last round: nothing, or that it goes in circles."""
    needed = SAME_FAILURE_ROUNDS if call.is_error else SAME_RESULT_ROUNDS
    last = rounds[-needed:]
    if len(last) < needed or not all(any(_same(call, other) for other in one) for one in last):
        return None
    return "repeated_error" if call.is_error else "repeated_call"


def explanation(found: Repetition, call: FinishedCall) -> str:
    """The error result, short and with the next step."""
    if found == "repeated_error":
        return (
            f"repeated_error: '{call.tool_name}' failed {SAME_FAILURE_ROUNDS} times with the same arguments. "
            "Do not call it like this again: change the arguments, use another tool, or tell the user what is missing."
        )
    return (
        f"repeated_call: '{call.tool_name}' gave the same result {SAME_RESULT_ROUNDS} times with the same arguments. "
        "Do not call it like this again: use the result, or do something else."
    )


def check_next_calls(rounds: Sequence[Round], calls: Sequence[tuple[str, str]]) -> None:
    """Before the calls (name, arguments) of a new round run.

    Raises:
        LoopGuard: one of them was called a repetition in the last round.
    """
    if not rounds:
        return
    for name, arguments_json in calls:
        for call in rounds[-1]:
            same = call.tool_name == name and _canonical(call.arguments_json) == _canonical(arguments_json)
            if same and repetition(rounds, call) is not None:
                raise LoopGuard(
                    f"the model called '{name}' again with the same arguments after being told that it repeats itself",
                    tool_name=name,
                )


def check_failures(rounds: Sequence[Round]) -> None:
    """After a round.

    Raises:
        LoopGuard: every call of the last rounds failed.
    """
    last = rounds[-FAILED_ROUNDS:]
    if len(last) == FAILED_ROUNDS and all(one and all(call.is_error for call in one) for one in last):
        raise LoopGuard(f"every tool call of {FAILED_ROUNDS} rounds in a row failed", rounds=FAILED_ROUNDS)


def _same(one: FinishedCall, other: FinishedCall) -> bool:
    """A failure counts whatever its text: that may hold a time or a number."""
    return (
        one.tool_name == other.tool_name
        and one.is_error == other.is_error
        and (one.is_error or one.result == other.result)
        and _canonical(one.arguments_json) == _canonical(other.arguments_json)
    )


def _canonical(arguments_json: str) -> str:
    """Equal for equal JSON; text that is no JSON counts as it is."""
    try:
        return json.dumps(json.loads(arguments_json), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments_json
