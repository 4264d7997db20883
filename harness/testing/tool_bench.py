"""Measures how often a model does what the tasks want, through `ConversationalLLM` like everything else."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.contract.content import TextBlock, as_content
from harness.contract.conversational_llm import ConversationalLLM
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.output import TERMINAL, Message, Phase, TurnStatus
from harness.contract.requests import HostRequest, HostResponse, RequestKind
from harness.contract.state import TurnState
from harness.errors import HarnessError
from harness.testing.tool_tasks import ERROR, Made, Task

MAX_CALLS = 12
"""A model that goes on calling has failed the task."""


@dataclass(frozen=True)
class Trial:
    """One task, tried once. `problem` says why it counts as failed where the turn itself failed."""

    task: str
    is_success: bool
    seconds: float
    problem: str | None = None


async def run_trials(
    llm: ConversationalLLM, options: ConversationOptions, tasks: Sequence[Task], repetitions: int
) -> AsyncIterator[Trial]:
    """Each task in a conversation of its own, so that nothing is learned from the one before."""
    for _ in range(repetitions):
        for task in tasks:
            yield await _try(llm, options, task)


def success_rates(trials: Sequence[Trial]) -> Mapping[str, tuple[int, int]]:
    """Task -> successes and trials, in the order they were first tried."""
    rates: dict[str, tuple[int, int]] = {}
    for trial in trials:
        successes, all_ = rates.get(trial.task, (0, 0))
        rates[trial.task] = successes + trial.is_success, all_ + 1
    return rates


async def _try(llm: ConversationalLLM, options: ConversationOptions, task: Task) -> Trial:
    begun = time.monotonic()
    problem: str | None = None
    is_success = False
    conversation_id = await llm.begin_conversation(options.model_copy(update={"tools": list(task.tools)}))
    try:
        made, problem = await _made_of(llm, conversation_id, task)
        is_success = problem is None and task.is_success(made)
    except HarnessError as error:
        problem = f"{error.code}: {error.message}"
    finally:
        await llm.end_conversation(conversation_id)
    return Trial(task.name, is_success, time.monotonic() - begun, problem)


async def _made_of(llm: ConversationalLLM, conversation_id: str, task: Task) -> tuple[Made, str | None]:
    turn_options = TurnOptions(output_schema_json=task.output_schema_json)
    turn_id = await llm.submit_user_message(conversation_id, as_content(task.message), turn_options)
    calls: list[tuple[str, Mapping[str, Any]]] = []
    rounds: list[int] = []
    texts: list[str] = []
    since = 0
    while True:
        state = await llm.poll_turn(conversation_id, turn_id, since, 30_000)
        since = state.sequence_no
        texts += _final_texts(state)
        if state.status in TERMINAL and not state.has_more:
            break
        if state.pending_requests:
            rounds.append(len(state.pending_requests))
            calls += [_call(request) for request in state.pending_requests if request.kind == RequestKind.TOOL_CALL]
            if len(calls) > MAX_CALLS:
                await llm.cancel_turn(conversation_id, turn_id)
                continue
            answers = [_answer(task, request) for request in state.pending_requests]
            await llm.submit_responses(conversation_id, turn_id, answers)
    structured = json.loads(state.structured_output_json or "{}")
    problem = None if state.status == TurnStatus.COMPLETED else _problem(state)
    return Made(calls, rounds, "\n".join(texts), structured), problem


def _problem(state: TurnState) -> str:
    return "it went on calling" if state.error is None else f"{state.error.code}: {state.error.message}"


def _final_texts(state: TurnState) -> list[str]:
    said = [item for item in state.new_output_items if isinstance(item, Message) and item.phase != Phase.COMMENTARY]
    return [block.text for item in said for block in item.content if isinstance(block, TextBlock)]


def _call(request: HostRequest) -> tuple[str, Mapping[str, Any]]:
    return request.tool_name or "", json.loads(request.arguments_json or "{}")


def _answer(task: Task, request: HostRequest) -> HostResponse:
    """Tool calls get the task's result; anything else a peer asks is denied or declined."""
    if request.kind == RequestKind.APPROVAL:
        return HostResponse(request_id=request.request_id, selected_option="deny", reason="not part of the task")
    if request.kind == RequestKind.USER_QUESTION:
        return HostResponse(request_id=request.request_id, action="decline")
    text = task.answer(*_call(request))
    content = as_content(text.removeprefix(ERROR))
    return HostResponse(request_id=request.request_id, content=content, is_error=text.startswith(ERROR))
