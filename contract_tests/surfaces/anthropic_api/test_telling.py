"""Replies, errors and side requests in the API's words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract_tests.requirements import requirement
from harness.contract import ToolCall, UsageInfo
from harness.errors import (
    ConnectorUnavailable,
    ContextOverflow,
    HarnessError,
    LimitExceeded,
    NotSupported,
    PeerLost,
    ProviderError,
    TurnStalled,
    Unauthorized,
)
from harness.surfaces.anthropic.body import MessagesBody
from harness.surfaces.anthropic.errors import refusal
from harness.surfaces.anthropic.render import EventWriter, whole_message
from harness.surfaces.anthropic.request import MessagesRequest, messages_request
from harness.surfaces.anthropic.side import count_tokens, side_reply
from harness.surfaces.compatible.exchange import (
    CallPart,
    ReplyEnd,
    ReplyEnded,
    ReplyFailed,
    ReplyPart,
    TextPart,
    ThinkingPart,
)
from harness.surfaces.compatible.refusals import wire_status
from harness.surfaces.compatible.reply import WholeReply
from harness.wire.sse import SseReader

BIG = '{"n":12345678901234567890}'
CALLS = (ToolCall(call_id="c1", tool_name="weather", arguments_json=BIG), ToolCall(call_id="c2", tool_name="clock"))
USAGE = UsageInfo(input_tokens=1500, cached_input_tokens=300, cache_write_tokens=200, output_tokens=50)
WIRE_USAGE = {
    "input_tokens": 1000,
    "cache_creation_input_tokens": 200,
    "cache_read_input_tokens": 300,
    "output_tokens": 50,
}


SHOWN = MessagesRequest("fake", None, (), shows_thinking=True)
HIDDEN = MessagesRequest("fake", None, ())


def events(*parts: ReplyPart, request: MessagesRequest = SHOWN) -> list[dict[str, Any]]:
    writer = EventWriter("msg_1", request)
    read = SseReader().feed(writer.opening() + b"".join(writer.part(part) for part in parts))
    told = [json.loads(event.data) for event in read]
    assert [event.event for event in read] == [one["type"] for one in told]
    return told


@requirement("anthropic-surface:events")
def test_a_stream_tells_block_after_block_and_then_how_it_ended() -> None:
    told = events(
        ThinkingPart("Hm"),
        ThinkingPart("."),
        TextPart("I "),
        TextPart("look."),
        *(CallPart(call) for call in CALLS),
        ReplyEnded(ReplyEnd.TOOL_CALLS, USAGE),
    )
    assert told[0]["message"] | {"usage": None} == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "fake",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": None,
    }
    assert [(one["type"], one.get("index")) for one in told[1:]] == [
        ("content_block_start", 0),
        *([("content_block_delta", 0)] * 3),  # the last one is the signature
        ("content_block_stop", 0),
        ("content_block_start", 1),
        *([("content_block_delta", 1)] * 2),
        ("content_block_stop", 1),
        ("content_block_start", 2),
        ("content_block_delta", 2),
        ("content_block_stop", 2),
        ("content_block_start", 3),
        ("content_block_delta", 3),
        ("content_block_stop", 3),
        ("message_delta", None),
        ("message_stop", None),
    ]
    assert told[10]["content_block"] == {"type": "tool_use", "id": "c1", "name": "weather", "input": {}}
    assert told[11]["delta"] == {"type": "input_json_delta", "partial_json": BIG}
    assert told[-2] == {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": WIRE_USAGE,
    }


@requirement("anthropic-surface:events")
@pytest.mark.parametrize(
    ("end", "stop_reason"),
    [
        (ReplyEnd.END_TURN, "end_turn"),
        (ReplyEnd.TOOL_CALLS, "tool_use"),
        (ReplyEnd.MAX_TOKENS, "max_tokens"),
        (ReplyEnd.REFUSAL, "refusal"),
    ],
)
def test_every_end_has_its_stop_reason(end: ReplyEnd, stop_reason: str) -> None:
    assert events(ReplyEnded(end, None))[-2]["delta"]["stop_reason"] == stop_reason
    whole = whole_message("msg_1", SHOWN, WholeReply("a", "", (), end, None))
    assert whole["stop_reason"] == stop_reason


@requirement("anthropic-surface:events")
def test_thinking_is_left_out_for_those_who_did_not_ask() -> None:
    told = events(ThinkingPart("Hm."), TextPart("Yes."), ReplyEnded(ReplyEnd.END_TURN, None), request=HIDDEN)
    assert [one["content_block"]["type"] for one in told if one["type"] == "content_block_start"] == ["text"]
    reply = WholeReply("Yes.", "Hm.", (), ReplyEnd.END_TURN, None)
    assert "Hm." not in str(whole_message("msg_1", HIDDEN, reply))


@requirement("anthropic-surface:events")
def test_a_whole_message_has_all_blocks_and_the_arguments_as_they_came() -> None:
    reply = WholeReply("I look.", "Hm.", CALLS, ReplyEnd.TOOL_CALLS, USAGE)
    message = whole_message("msg_1", SHOWN, reply)
    assert [block["type"] for block in message["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block["input"] for block in message["content"][2:]] == [json.loads(BIG), {}]
    assert (message["stop_reason"], message["usage"]) == ("tool_use", WIRE_USAGE)


@requirement("anthropic-surface:events")
@pytest.mark.parametrize(
    ("arguments_json", "given"),
    [("", {}), ('["a"]', {"input": ["a"]}), ('{"a', {"input": '{"a'})],
)
def test_arguments_that_are_no_object_are_passed_on_within_one(arguments_json: str, given: dict[str, Any]) -> None:
    call = ToolCall(call_id="c1", tool_name="weather", arguments_json=arguments_json)
    reply = WholeReply("", "", (call,), ReplyEnd.TOOL_CALLS, None)
    whole = whole_message("msg_1", SHOWN, reply)
    assert whole["content"][0]["input"] == given
    delta = next(one for one in events(CallPart(call)) if one["type"] == "content_block_delta")
    assert json.loads(delta["delta"]["partial_json"]) == given


@requirement("anthropic-surface:events")
def test_a_tool_whose_name_is_too_long_for_an_agent_is_called_by_its_own_name() -> None:
    name = "mcp__a_server__" + "x" * 100
    tool = {"name": name, "input_schema": {"type": "object"}}
    past: list[Any] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": name, "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]},
    ]
    choice = {"type": "tool", "name": name}
    body = {"model": "fake", "messages": past, "tools": [tool], "tool_choice": choice}
    request = messages_request(MessagesBody.model_validate(body))
    [inner] = [tool.name for tool in request.tools]
    assert len(inner) == 64
    assert request.messages[1].tool_calls[0].tool_name == inner
    assert request.options.tool_names == [inner]

    call = ToolCall(call_id="c2", tool_name=inner)
    assert events(CallPart(call), request=request)[1]["content_block"]["name"] == name
    whole = whole_message("msg_1", request, WholeReply("", "", (call,), ReplyEnd.TOOL_CALLS, None))
    assert whole["content"][0]["name"] == name


@requirement("anthropic-surface:errors")
def test_a_reply_that_breaks_ends_with_an_error_event() -> None:
    told = events(TextPart("half"), ReplyFailed(PeerLost("the peer died")))
    assert told[-1]["error"] == {"type": "api_error", "message": "the peer died", "code": "peer_lost"}


@requirement("anthropic-surface:errors")
@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (Unauthorized("no"), 401, "authentication_error"),
        (NotSupported("no"), 400, "invalid_request_error"),
        (LimitExceeded("no", retry_after_ms=1500), 429, "rate_limit_error"),
        (ProviderError("no", reason="rate_limit"), 429, "rate_limit_error"),
        (ProviderError("no", reason="billing"), 402, "billing_error"),
        (ProviderError("no", reason="overloaded"), 529, "overloaded_error"),
        (ConnectorUnavailable("no"), 503, "api_error"),
        (TurnStalled("no"), 504, "timeout_error"),
    ],
)
def test_errors_have_the_apis_type_and_status(error: HarnessError, status: int, kind: str) -> None:
    response = refusal(error, wire_status(error))
    body = json.loads(bytes(response.body))
    assert (response.status_code, body["error"]["type"], body["error"]["code"]) == (status, kind, error.code)
    assert body["request_id"] == response.headers["request-id"]


@requirement("anthropic-surface:errors")
def test_an_overflow_is_said_in_the_words_that_make_clients_shorten_their_history() -> None:
    assert b"prompt is too long: " in bytes(refusal(ContextOverflow("300 tokens, 200 fit")).body)


def side(said: str, **members: Any) -> tuple[ReplyPart, ...] | None:
    body = {"model": "fake", "messages": [{"role": "user", "content": said}], **members}
    return side_reply(messages_request(MessagesBody.model_validate(body)))


TITLE = {"format": {"type": "json_schema", "schema": {"type": "object", "properties": {"title": {"type": "string"}}}}}


@requirement("anthropic-surface:side-requests")
def test_a_title_is_the_first_words_of_the_session() -> None:
    asked = (
        "<session>\nRepair   the\nlogin page and then see to it that nobody can break it again\n</session>\n\nWrite."
    )
    reply = side(asked, output_config=TITLE)
    assert reply is not None
    assert isinstance(reply[0], TextPart)
    assert json.loads(reply[0].text) == {"title": "Repair the login page and then see to it that nobody can"}


@requirement("anthropic-surface:side-requests")
def test_a_probe_gets_its_token() -> None:
    reply = side("quota", max_tokens=1)
    assert reply is not None
    assert reply[-1] == ReplyEnded(ReplyEnd.MAX_TOKENS, UsageInfo(input_tokens=0, output_tokens=1))


@requirement("anthropic-surface:side-requests")
def test_everything_else_is_no_side_request() -> None:
    tool = {"name": "weather", "input_schema": {"type": "object"}}
    assert side("Hi") is None
    assert side("Hi", max_tokens=1, tools=[tool]) is None
    assert side("Hi", output_config=TITLE) is None


@requirement("anthropic-surface:side-requests")
def test_an_image_counts_as_an_image_however_long_its_data() -> None:
    def counted(data: str) -> int:
        source = {"type": "base64", "media_type": "image/png", "data": data}
        block = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "image", "source": source}]}
        return count_tokens(
            MessagesBody.model_validate({"model": "fake", "messages": [{"role": "user", "content": [block]}]})
        )

    assert counted("a" * 100_000) == counted("a")
    assert counted("a") > 1_000
