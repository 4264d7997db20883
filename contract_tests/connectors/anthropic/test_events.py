"""Events of the Messages API that the scripted model does not make: server tools, other servers' habits, failures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.anthropic.reader import MessageReader
from contract_tests.connectors.heard import Listener
from contract_tests.requirements import requirement
from harness.errors import ProviderError
from harness.model_loop import ModelAnswer

START = {"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 3}}}


def read(*events: dict[str, Any], listener: Listener | None = None) -> ModelAnswer:
    reader = MessageReader(listener or Listener(), "the server")
    for event in events:
        reader.receive(json.dumps(event).encode())
    return reader.answer()


def end(reason: str, output_tokens: int = 7) -> list[dict[str, Any]]:
    delta = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": output_tokens}}
    return [delta, {"type": "message_stop"}]


def begin(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def add(index: int, kind: str, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


@requirement("anthropic:events")
def test_blocks_open_at_once_are_read_by_their_index() -> None:
    answer = read(
        START,
        begin(0, type="tool_use", id="a", name="f"),
        begin(1, type="tool_use", id="b", name="g"),
        add(1, "input_json_delta", partial_json='{"y"'),
        add(0, "input_json_delta", partial_json='{"x": 1}'),
        add(1, "input_json_delta", partial_json=": 2}"),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_stop", "index": 1},
        *end("tool_use"),
    )
    assert [(call.call_id, call.arguments_json) for call in answer.calls] == [("a", '{"x": 1}'), ("b", '{"y": 2}')]
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.cached_input_tokens, answer.usage.cache_write_tokens) == (
        8,
        3,
        None,
    )


@requirement("anthropic:events")
def test_thinking_goes_back_with_its_signature_and_redacted_thinking_as_it_is() -> None:
    redacted = {"type": "redacted_thinking", "data": "xyz"}
    answer = read(
        START,
        begin(0, type="thinking", thinking="", signature=""),
        add(0, "thinking_delta", thinking="Hm."),
        add(0, "signature_delta", signature="c2ln"),
        begin(1, **redacted),
        begin(2, type="text", text=""),
        add(2, "text_delta", text="Hi."),
        *end("end_turn"),
    )
    assert answer.native == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        redacted,
        {"type": "text", "text": "Hi."},
    ]


@requirement("anthropic:events")
def test_server_tools_are_shown_as_the_providers_own_and_go_back_whole() -> None:
    listener = Listener()
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result"}]}
    failed = {"type": "web_search_tool_result", "tool_use_id": "s2", "content": {"error_code": "max_uses_exceeded"}}
    citation = {"type": "web_search_result_location", "url": "https://example.org"}
    answer = read(
        START,
        begin(0, type="server_tool_use", id="s1", name="web_search"),
        add(0, "input_json_delta", partial_json='{"query": "q"}'),
        begin(1, **result),
        begin(2, **failed),
        begin(3, type="text", text=""),
        add(3, "citations_delta", citation=citation),
        add(3, "text_delta", text="News."),
        *end("end_turn"),
        listener=listener,
    )
    shown = [dict(event.fields) for event in listener.shown]
    assert [one.get("result") for one in shown] == [None, "ok", "failed"]
    assert answer.calls == ()
    assert answer.native[0] == {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}
    assert answer.native[1] == result
    assert answer.native[3] == {"type": "text", "text": "News.", "citations": [citation]}


@requirement("anthropic:events")
@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([START, {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}}], "overloaded"),
        ([START, {"error": {"type": "api_error", "message": "boom"}}], "server"),
        ([START, begin(0, type="text", text="half")], "network"),
    ],
)
def test_failures_and_cut_streams_are_errors(events: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(ProviderError) as caught:
        read(*events)
    assert caught.value.detail["reason"] == reason


@requirement("anthropic:events")
def test_unknown_events_and_pings_harm_nothing() -> None:
    listener = Listener()
    read(START, {"type": "ping"}, {"type": "new_event"}, add(0, "new_delta"), *end("end_turn"), listener=listener)
    assert listener.unknown_kinds == ["new_event", "new_delta"]
