"""All tools in one place: names, order, and arguments judged before anything runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from contract_tests.requirements import requirement
from harness import tool
from harness.contract import TextBlock, ToolCall, ToolDescriptor
from harness.errors import InvalidArgument
from harness.orchestrator.refusals import RefusalKind
from harness.orchestrator.tool_context import ToolContext
from harness.orchestrator.tool_provider import ToolOutcome, failure
from harness.orchestrator.tool_registry import RunCall, ToolRegistry


class Source:
    """A provider whose tool remembers its calls."""

    def __init__(self, *descriptors: ToolDescriptor, label: str = "source", error: Exception | None = None) -> None:
        self.label = label
        self.calls: list[ToolCall] = []
        self._descriptors = descriptors
        self._error = error

    async def list_tools(self) -> Sequence[ToolDescriptor]:
        return self._descriptors

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutcome:
        self.calls.append(call)
        if self._error is not None:
            raise self._error
        return ToolOutcome([TextBlock(text="ran")])


def tool_with(schema: object, name: str = "find") -> ToolDescriptor:
    return ToolDescriptor(name=name, input_schema_json=json.dumps(schema))


async def attempt(source: Source, arguments_json: str, name: str = "find") -> ToolOutcome:
    registry = await ToolRegistry.of([source])
    return await registry.run(ToolCall(call_id="1", tool_name=name, arguments_json=arguments_json))


def said(outcome: ToolOutcome) -> str:
    return "".join(block.text for block in outcome.content if isinstance(block, TextBlock))


@requirement("orchestrator:registry:sorted-unique")
async def test_tools_of_all_sources_are_one_sorted_list() -> None:
    def zebra() -> None: ...
    def ant() -> None: ...

    registry = await ToolRegistry.of([zebra, Source(tool_with({}, "middle")), ant])
    assert [descriptor.name for descriptor in registry.descriptors] == ["ant", "middle", "zebra"]
    assert await ToolRegistry.of(registry) is registry


@requirement("orchestrator:registry:sorted-unique")
async def test_name_that_two_sources_use_is_an_error_that_names_both() -> None:
    with pytest.raises(InvalidArgument, match=r"'find'.*MCP server 'a'.*MCP server 'b'"):
        await ToolRegistry.of(
            [Source(tool_with({}), label="MCP server 'a'"), Source(tool_with({}), label="MCP server 'b'")]
        )


async def test_what_is_no_tool_and_what_has_a_broken_schema_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="'7' is no tool"):
        await ToolRegistry.of([7])  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match="schema of tool 'find' is broken"):
        await ToolRegistry.of([Source(tool_with({"type": "objekt"}))])


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["c", "f"]},
        "days": {"$ref": "#/$defs/days"},
        "address": {"type": "string", "format": "ipv4"},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"days": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}},
}


@requirement("orchestrator:arguments:actionable")
@pytest.mark.parametrize(
    ("arguments_json", "words"),
    [
        ("{}", ["'city' is a required property", "It takes: 'city' (string, required)"]),
        ('{"city": 7}', ["'city': 7 is not of type 'string'"]),
        ('{"city": "Oslo", "unit": "k"}', ["'unit'", '["c", "f"]']),
        ('{"city": "Oslo", "cty": 1}', ["'cty'"]),
        ('{"city": "Oslo", "days": 0}', ["'days': 0 is less than the minimum of 1"]),
        ('{"city": "Oslo", "address": "x"}', ["'address'", "ipv4"]),
        ("[]", ["one JSON object"]),
        ('{"city": ', ["not JSON"]),
        ('{"city": NaN}', ["NaN"]),
    ],
)
async def test_arguments_that_do_not_fit_never_reach_the_tool(arguments_json: str, words: list[str]) -> None:
    source = Source(tool_with(SCHEMA))
    outcome = await attempt(source, arguments_json)
    assert source.calls == []
    assert outcome.is_error
    assert outcome.refusal is not None
    assert outcome.refusal.kind == RefusalKind.INVALID_ARGUMENTS
    assert all(word in said(outcome) for word in words), said(outcome)


@requirement("orchestrator:arguments:actionable")
async def test_many_complaints_are_cut_short() -> None:
    outcome = await attempt(Source(tool_with(SCHEMA)), json.dumps({f"x{n}": n for n in range(9)} | {"unit": "k" * 999}))
    assert len(said(outcome)) < 1500


@requirement("orchestrator:arguments:pass-through")
async def test_arguments_that_fit_are_passed_on_letter_by_letter() -> None:
    source = Source(tool_with(SCHEMA))
    text = '{ "city" : "\\ud800 \\u00f8",\n "days": 12345678901234567890 }'
    outcome = await attempt(source, text)
    assert said(outcome) == "ran"
    assert [call.arguments_json for call in source.calls] == [text]


@requirement("orchestrator:arguments:no-fetch")
async def test_schema_that_refers_elsewhere_is_never_fetched() -> None:
    source = Source(tool_with({"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/schema.json"}}}))
    outcome = await attempt(source, '{"x": 1}')
    assert outcome.is_error
    assert "http://127.0.0.1:9/schema.json" in said(outcome)
    assert source.calls == []


@requirement("orchestrator:registry:unknown-tool")
async def test_unknown_tool_is_an_error_result_that_names_the_known_ones() -> None:
    outcome = await attempt(Source(tool_with({})), "{}", name="fnid")
    assert outcome.is_error
    assert "'fnid'" in said(outcome)
    assert "'find'" in said(outcome)


async def test_provider_that_raises_becomes_an_error_result(caplog: pytest.LogCaptureFixture) -> None:
    outcome = await attempt(Source(tool_with({}), error=RuntimeError("lost")), "{}")
    assert outcome.is_error
    assert said(outcome) == "RuntimeError: lost"
    assert "tool 'find' of source failed" in caplog.text


async def test_only_what_says_so_is_read_only() -> None:
    @tool(read_only=True)
    def look() -> None: ...
    def touch() -> None: ...

    registry = await ToolRegistry.of([look, touch])
    assert [registry.is_read_only(name) for name in ("look", "touch")] == [True, False]


# hooks around calls


@requirement("orchestrator:registry:around")
async def test_hooks_see_call_and_result_in_order_and_may_replace_either() -> None:
    seen: list[str] = []

    async def outer(call: ToolCall, run: RunCall) -> ToolOutcome:
        seen.append(f"outer {call.arguments_json}")
        outcome = await run(call.model_copy(update={"arguments_json": '{"n":2}'}))
        seen.append(f"outer {said(outcome)}")
        return ToolOutcome([TextBlock(text="hidden")])

    async def inner(call: ToolCall, run: RunCall) -> ToolOutcome:
        seen.append(f"inner {call.arguments_json}")
        outcome = await run(call)
        seen.append(f"inner {said(outcome)}")
        return outcome

    source = Source(tool_with({}))
    registry = (await ToolRegistry.of([source])).around(outer, inner)
    outcome = await registry.run(ToolCall(call_id="1", tool_name="find", arguments_json='{"n":1}'))
    assert said(outcome) == "hidden"
    assert seen == ['outer {"n":1}', 'inner {"n":2}', "inner ran", "outer ran"]
    assert [call.arguments_json for call in source.calls] == ['{"n":2}']


@requirement("orchestrator:registry:around")
async def test_hook_cannot_bring_a_call_past_the_policy() -> None:
    async def sneak(call: ToolCall, run: RunCall) -> ToolOutcome:
        return await run(call.model_copy(update={"tool_name": "erase"}))

    async def no_erasing(call: ToolCall) -> ToolCall | ToolOutcome:
        return failure("denied", RefusalKind.DENIED) if call.tool_name == "erase" else call

    source = Source(tool_with({}), tool_with({}, "erase"))
    registry = (await ToolRegistry.of([source])).around(sneak)
    outcome = await registry.run(ToolCall(call_id="1", tool_name="find"), gate=no_erasing)
    assert (said(outcome), outcome.is_error, source.calls) == ("denied", True, [])


@requirement("orchestrator:registry:around")
async def test_what_the_gate_changed_is_judged_again_and_stays_the_same_tool() -> None:
    async def edit(call: ToolCall) -> ToolCall | ToolOutcome:
        return ToolCall(call_id=call.call_id, tool_name="other", arguments_json=edited)

    source = Source(tool_with(SCHEMA), tool_with({}, "other"))
    registry = await ToolRegistry.of([source])
    call = ToolCall(call_id="1", tool_name="find", arguments_json='{"city": "Oslo"}')
    edited = "{}"
    assert (await registry.run(call, gate=edit)).is_error
    edited = '{"city": "Bergen"}'
    assert said(await registry.run(call, gate=edit)) == "ran"
    assert [(call.tool_name, call.arguments_json) for call in source.calls] == [("find", edited)]


async def test_hook_that_raises_becomes_an_error_result(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(call: ToolCall, run: RunCall) -> ToolOutcome:
        raise RuntimeError("hook lost")

    registry = (await ToolRegistry.of([Source(tool_with({}))])).around(broken)
    outcome = await registry.run(ToolCall(call_id="1", tool_name="find"))
    assert (outcome.is_error, said(outcome)) == (True, "RuntimeError: hook lost")
    assert "hook around tool 'find'" in caplog.text
