"""A scenario's script -> the turns of the connector `fake` (pure). The peer is as scripted as its model there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.scripted_model.script import ScriptedUsage
from harness.testing.scenario import ASK, RUN, Entry, Scenario

NAMES = {RUN: "run", ASK: "ask"}
_COST_PER_TOKEN_USD = 0.000_003
_NO_RETRY = range(400, 429)


def fake_turns(scenario: Scenario) -> list[list[dict[str, Any]]]:
    """The steps of every turn, by the order in which they are said."""
    return [_Turn(scenario, number, entries).steps() for number, entries in enumerate(scenario.script, 1)]


class _Turn:
    def __init__(self, scenario: Scenario, number: int, entries: Sequence[Entry]) -> None:
        self._scenario = scenario
        self._number = number
        self._entries = entries
        self._used = {"input_tokens": 0, "cached_input_tokens": 0, "cache_write_tokens": 0, "output_tokens": 0}
        self._model_calls = 0

    def steps(self) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = []
        for position, entry in enumerate(self._entries):
            is_last = position == len(self._entries) - 1
            steps += self._entry(entry, position, is_last)
            if any("end" in step or "error" in step for step in steps):
                break
        return steps

    def _entry(self, entry: Entry, position: int, is_last: bool) -> list[dict[str, Any]]:
        item_id = f"m{self._number}_{position}"
        if "die" in entry:
            return [{"die": "now"}]
        if "withdraw" in entry:
            return [{"withdraw": entry["withdraw"]}]
        if "error" in entry:
            return [_failure(entry["error"], is_last)]
        said = _said(entry, item_id)
        if entry.get("drop"):
            return [*said, {"discard": item_id}, {"notice": {"code": "retry", "text": "the stream was cut"}}]
        if entry.get("hang"):
            return [*said, {"hang": True}]
        text = "".join(_pieces(entry.get("text", ())))
        if text:
            phase = "commentary" if entry.get("calls") else "final"
            said.append({"message": text, "item_id": item_id, "phase": phase})
        usage = self._usage(entry)
        if self._is_over_budget():
            return [*said, usage, {"end": "budget"}]
        stop = entry.get("stop")
        if stop in ("max_tokens", "refusal"):
            return [*said, usage, {"end": stop}]
        return [*said, usage, *_calls(entry.get("calls", ()), waits=entry.get("waits", True))]

    def _usage(self, entry: Entry) -> dict[str, Any]:
        for name, value in ScriptedUsage.model_validate(entry.get("usage", {})).model_dump().items():
            self._used[name] += value
        self._model_calls += 1
        return {"usage": {**self._used, "model_calls": self._model_calls, "cost_usd": self._cost()}}

    def _cost(self) -> float:
        return (self._used["input_tokens"] + self._used["output_tokens"]) * _COST_PER_TOKEN_USD

    def _is_over_budget(self) -> bool:
        budget = getattr(self._scenario.options.get("limits"), "cost_budget_usd", None)
        return budget is not None and self._cost() > budget


def _pieces(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _said(entry: Entry, item_id: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    if "thinking" in entry:
        steps.append({"thinking": _pieces(entry["thinking"])})
    if "text" in entry:
        steps.append({"text": _pieces(entry["text"]), "item_id": item_id})
    return steps


def _failure(error: Mapping[str, Any], is_last: bool) -> dict[str, Any]:
    """A failure that passes by itself is told while the peer tries again; the last one fails the turn."""
    status, message = error["status"], error["message"]
    if not is_last and status not in _NO_RETRY:
        code = "rate_limit" if status == 429 else "retry"
        return {"notice": {"code": code, "text": f"{message} (status {status}), trying again"}}
    reason = {401: "auth", 429: "rate_limit"}.get(status, "server" if status >= 500 else "request")
    detail = {"status": status, "reason": reason}
    return {"error": {"code": "provider_error", "message": message, "detail": detail}}


def _calls(calls: Sequence[Mapping[str, Any]], *, waits: bool) -> list[dict[str, Any]]:
    """One round: what is routed is opened together, then the peer's own tools one by one."""
    routed = [_routed(one, order) for order, one in enumerate(calls) if one["name"] not in NAMES]
    steps: list[dict[str, Any]] = [{"calls": routed, "wait": waits}] if routed else []
    for one in calls:
        if one["name"] == RUN:
            steps += _internal(one)
        elif one["name"] == ASK:
            steps.append(_question(one))
    return steps


def _routed(one: Mapping[str, Any], order: int) -> dict[str, Any]:
    scripted = {name: one[name] for name in ("name", "id", "arguments", "arguments_json") if name in one}
    if "source" in one:
        scripted |= {"source": one["source"], "result": one["gives"]}
    return {**scripted, "order": order}


def _internal(one: Mapping[str, Any]) -> list[dict[str, Any]]:
    name, arguments, call_id = NAMES[RUN], one["arguments"], one["id"]
    ran = {"name": name, "call_id": call_id, "arguments": arguments, "source": "fake", "result_text": "done"}
    steps: list[dict[str, Any]] = []
    if one["asks"]:
        steps.append({"approval": {"tool": name, "call_id": call_id, "arguments": arguments, "read_only": False}})
    return [*steps, {"internal_tool": ran}]


def _question(one: Mapping[str, Any]) -> dict[str, Any]:
    questions = [
        {
            "id": f"q{number}",
            "text": asked["text"],
            "options": [{"id": label, "label": label} for label in asked["options"]],
            "multi_select": asked.get("multi_select", False),
            "allow_free_text": True,
        }
        for number, asked in enumerate(one["questions"], 1)
    ]
    return {"question": {"call_id": one["id"], "questions": questions}}


def as_connector_options(scenario: Scenario) -> str:
    return json.dumps({"turns": fake_turns(scenario), "capabilities": _capabilities(scenario)})


def _capabilities(scenario: Scenario) -> dict[str, Any]:
    used = [NAMES[name] for name in scenario.internal_tools]
    return {"internal_tools": sorted({*used, NAMES[RUN]}), "reports_cost": True}
