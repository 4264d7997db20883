"""The `anthropic` package as it comes from its index, against a real server on loopback."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import anyio
import pytest
from anthropic import AsyncAnthropic
from anthropic.types import Message, MessageParam, ToolParam, ToolResultBlockParam

from contract_tests.llm_suite import Peer, open_server
from contract_tests.requirements import requirement
from contract_tests.surfaces.anthropic_api.agents import conversations, sdk_of
from contract_tests.surfaces.http import client_of
from harness.contract import text_of
from harness.surfaces.compatible.settings import CompatibleSettings
from harness.surfaces.server import Server

WEATHER: ToolParam = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
QUESTION: MessageParam = {"role": "user", "content": "How is the weather?"}
LOOP = [
    {"thinking": ["Two ", "cities."]},
    {"text": ["I ", "look."]},
    {
        "calls": [
            {"name": "weather", "arguments": {"city": "Oslo"}, "id": "oslo"},
            {"name": "weather", "arguments": {"city": "Rome"}, "id": "rome"},
        ]
    },
    {"usage": {"input_tokens": 100, "cached_input_tokens": 30, "output_tokens": 7}},
    {"text": "Oslo: {{results.oslo}}, Rome: {{results.rome}}."},
]
HI = [{"text": "Hi."}]


@asynccontextmanager
async def open_sdk(
    script: object, peer: Peer | None = None, **options: Any
) -> AsyncGenerator[tuple[Server, AsyncAnthropic]]:
    with anyio.fail_after(30):
        async with open_server(script, peer, **options) as server, sdk_of(server) as client:
            yield server, client


async def create(client: AsyncAnthropic, messages: Sequence[MessageParam], **more: Any) -> Message:
    return await client.messages.create(
        **{"model": "fake", "max_tokens": 1000, "tools": [WEATHER], "messages": messages, **more}
    )


def answered(message: Message, results: dict[str, Any], *also: Any) -> list[MessageParam]:
    """The message and what the client says to it, as two more messages."""
    blocks: list[ToolResultBlockParam] = [
        {"type": "tool_result", "tool_use_id": call_id, "content": content} for call_id, content in results.items()
    ]
    return [{"role": "assistant", "content": message.content}, {"role": "user", "content": [*blocks, *also]}]  # type: ignore[list-item]


def said(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


# --- loops -----------------------------------------------------------------------------------------------------------


@requirement("anthropic-surface:sdk")
async def test_a_loop_with_parallel_calls_is_one_conversation() -> None:
    peer = Peer()
    async with open_sdk([LOOP, HI], peer) as (server, client):
        asked = await client.messages.with_raw_response.create(
            model="fake", max_tokens=1000, tools=[WEATHER], messages=[QUESTION]
        )
        first = await asked.parse()
        history = [QUESTION, *answered(first, {"rome": "sun", "oslo": "rain"})]
        second = await create(client, history)
        history += [{"role": "assistant", "content": second.content}, {"role": "user", "content": "Thanks."}]
        third = await create(client, history)
        [conversation] = await conversations(server)

    calls = [(block.id, block.name, block.input) for block in first.content if block.type == "tool_use"]
    assert calls == [("oslo", "weather", {"city": "Oslo"}), ("rome", "weather", {"city": "Rome"})]
    assert (first.stop_reason, said(first)) == ("tool_use", "I look.")
    assert (second.stop_reason, said(second)) == ("end_turn", "Oslo: rain, Rome: sun.")
    assert (second.usage.input_tokens, second.usage.cache_read_input_tokens, second.usage.output_tokens) == (70, 30, 7)
    assert said(third) == "Hi."
    assert asked.headers["x-harness-conversation"] == conversation["conversation_id"]
    assert conversation["turns"] == 2
    assert [one.what for one in peer.seen].count("opened") == 1


@requirement("anthropic-surface:sdk")
async def test_a_loop_is_streamed_with_thinking_and_goes_on_after_it() -> None:
    async with open_sdk([LOOP, HI]) as (server, client):
        kinds: list[str] = []
        thinking: Any = {"type": "enabled", "budget_tokens": 2048}
        shown: dict[str, Any] = {"model": "fake", "max_tokens": 4000, "tools": [WEATHER], "thinking": thinking}
        async with client.messages.stream(messages=[QUESTION], **shown) as stream:
            async for event in stream:
                kinds.append(event.type)
            first = await stream.get_final_message()
        history = [QUESTION, *answered(first, {"oslo": "rain", "rome": "sun"})]
        async with client.messages.stream(messages=history, **shown) as stream:
            second = await stream.get_final_message()
        history += [{"role": "assistant", "content": second.content}, {"role": "user", "content": "Thanks."}]
        async with client.messages.stream(messages=history, **shown) as stream:
            third = await stream.get_final_text()
        [conversation] = await conversations(server)

    assert [block.type for block in first.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert first.content[0].thinking == "Two cities."  # type: ignore[union-attr]
    assert [block.input for block in first.content if block.type == "tool_use"] == [{"city": "Oslo"}, {"city": "Rome"}]
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
    assert said(second) == "Oslo: rain, Rome: sun."
    assert (second.usage.input_tokens, second.usage.output_tokens) == (70, 7)
    assert third == "Hi."
    assert conversation["turns"] == 2


@requirement("anthropic-surface:sdk", "anthropic-surface:history")
async def test_words_beside_results_reach_the_peer_and_a_moved_cache_mark_breaks_nothing() -> None:
    peer = Peer()
    mark: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
    block: Any = {"type": "text", "text": "How is the weather?", **mark}
    marked: MessageParam = {"role": "user", "content": [block]}
    async with open_sdk([LOOP, HI], peer) as (server, client):
        first = await create(client, [marked])
        hint: Any = {"type": "text", "text": "Be brief.", **mark}
        results = {"oslo": [{"type": "text", "text": "rain"}], "rome": "sun"}
        second = await create(client, [QUESTION, *answered(first, results, hint)])
        history = [QUESTION, *answered(first, {"oslo": "rain", "rome": "sun"}, {"type": "text", "text": "Be brief."})]
        history += [{"role": "assistant", "content": second.content}, {"role": "user", "content": "Thanks."}]
        await create(client, history)
        [conversation] = await conversations(server)

    assert {one.request_id: text_of(one.content) for one in peer.answers} == {"oslo": "rain", "rome": "sun\nBe brief."}
    assert conversation["turns"] == 2


@requirement("anthropic-surface:sdk")
async def test_a_changed_message_begins_a_conversation_of_its_own_with_the_history() -> None:
    peer = Peer()
    async with open_sdk([HI], peer) as (server, client):
        first = await create(client, [QUESTION])
        other: MessageParam = {"role": "user", "content": "How is the food?"}
        await create(client, [other, {"role": "assistant", "content": first.content}, QUESTION])
        assert len(await conversations(server)) == 2


@requirement("anthropic-surface:sdk")
async def test_a_call_id_that_an_agent_repeats_is_another_one_for_the_client() -> None:
    """Claude Code loses a result whose id it has seen before, and a peer that begins anew may repeat one."""
    peer = Peer()
    same = {"name": "weather", "arguments": {"city": "Oslo"}, "id": "same"}
    async with open_sdk([[{"calls": [same]}, {"text": "{{results.same}}"}]], peer) as (_, client):
        first = await create(client, [QUESTION])
        # this history is where no conversation stands, so a new peer begins with it
        history: list[MessageParam] = [QUESTION, *answered(first, {"same": "rain"})]
        history.append({"role": "assistant", "content": "Made up."})
        second = await create(client, [*history, {"role": "user", "content": "Again."}])
        again = [*history, {"role": "user", "content": "Again."}, *answered(second, {"same~2": "sun"})]
        third = await create(client, again)
    assert [block.id for one in (first, second) for block in one.content if block.type == "tool_use"] == [
        "same",
        "same~2",
    ]
    assert said(third) == "sun"


@requirement("anthropic-surface:sdk")
async def test_to_leave_a_stream_cancels_the_turn() -> None:
    peer = Peer()
    settings = CompatibleSettings(stream_grace_seconds=0)
    async with open_sdk([[{"text": "one"}, {"hang": True}]], peer, compatible=settings) as (_, client):
        async with client.messages.stream(model="fake", max_tokens=100, messages=[QUESTION]) as stream:
            async for event in stream:
                if event.type == "text":
                    break
        await peer.has_seen("interrupt")


@requirement("anthropic-surface:events")
async def test_a_silent_stream_has_pings() -> None:
    go_on = anyio.Event()
    script = [[{"text": "one"}, {"until": go_on}, {"text": " two"}]]
    async with open_sdk(script, heartbeat_seconds=0.05) as (_, client):
        kinds: list[str] = []
        stream = await client.messages.create(model="fake", max_tokens=100, messages=[QUESTION], stream=True)
        async with client_of_stream(stream) as lines:
            async for line in lines:
                kinds.append(line)
                if line == "event: ping":
                    go_on.set()
    assert "event: ping" in kinds
    assert kinds[-1] == "event: message_stop"


@asynccontextmanager
async def client_of_stream(stream: Any) -> AsyncGenerator[Any]:
    """The lines that name events; the package itself keeps pings from its users."""

    async def names() -> AsyncGenerator[str]:
        async for line in stream.response.aiter_lines():
            if line.startswith("event: "):
                yield line

    try:
        yield names()
    finally:
        await stream.close()


# --- errors ----------------------------------------------------------------------------------------------------------


@requirement("anthropic-surface:errors")
async def test_a_wrong_key_is_an_authentication_error_and_both_places_for_the_right_one_work() -> None:
    async with open_sdk([HI]) as (server, client):
        with pytest.raises(anthropic.AuthenticationError):
            await create(client.with_options(api_key="wrong"), [QUESTION])
        bearer = client.copy(api_key=None, auth_token=server.tokens[0].secret)
        assert said(await create(bearer, [QUESTION])) == "Hi."


@requirement("anthropic-surface:errors")
async def test_a_knock_needs_no_key_and_an_unknown_path_is_refused_in_the_apis_shape() -> None:
    async with open_server([HI]) as server:
        async with client_of(server, token=None) as stranger:
            assert [(await stranger.head(path)).status_code for path in ("/anthropic", "/anthropic/")] == [200, 200]
            refused = await stranger.get("/anthropic/v1/models")
        async with client_of(server) as client:
            unknown = await client.get("/anthropic/v1/files")
    assert (refused.status_code, refused.json()["error"]["type"]) == (401, "authentication_error")
    assert (unknown.status_code, unknown.json()["type"], unknown.json()["error"]["type"]) == (
        404,
        "error",
        "not_found_error",
    )


@requirement("anthropic-surface:errors")
async def test_an_unknown_model_is_not_found_and_the_message_names_the_known_ones() -> None:
    async with open_sdk([HI]) as (_, client):
        with pytest.raises(anthropic.NotFoundError, match="'fake'"):
            await create(client, [QUESTION], model="claude-opus-5-5")
        with pytest.raises(anthropic.NotFoundError):
            await client.models.retrieve("claude-opus-5-5")
        assert [model.id async for model in client.models.list()] == ["fake"]
        assert (await client.models.retrieve("fake/big")).id == "fake/big"


@requirement("anthropic-surface:errors")
async def test_results_for_some_of_the_calls_are_refused_and_nothing_is_lost() -> None:
    async with open_sdk([LOOP]) as (_, client):
        first = await create(client, [QUESTION])
        with pytest.raises(anthropic.BadRequestError, match="'rome'"):
            await create(client, [QUESTION, *answered(first, {"oslo": "rain"})])
        second = await create(client, [QUESTION, *answered(first, {"oslo": "rain", "rome": "sun"})])
    assert said(second) == "Oslo: rain, Rome: sun."


@requirement("anthropic-surface:errors")
async def test_what_fails_at_once_is_a_status_and_says_whether_to_try_again() -> None:
    limit = {"code": "provider_error", "detail": {"reason": "rate_limit", "retry_after_ms": 1500}}
    async with open_sdk([[{"error": limit}]]) as (_, client):
        for stream in (False, True):
            with pytest.raises(anthropic.RateLimitError) as refused:
                await create(client, [QUESTION], stream=stream, system=str(stream))
            headers = refused.value.response.headers
            assert (headers["x-should-retry"], headers["retry-after"]) == ("true", "2")


@requirement("anthropic-surface:errors")
async def test_what_breaks_in_mid_stream_is_an_error_of_the_package() -> None:
    async with open_sdk([[{"text": "half"}, {"error": {"code": "peer_lost", "message": "it died"}}]]) as (_, client):
        with pytest.raises(anthropic.APIStatusError, match="it died"):
            async with client.messages.stream(model="fake", max_tokens=100, messages=[QUESTION]) as stream:
                await stream.get_final_message()


@requirement("anthropic-surface:meaning")
async def test_what_the_connector_cannot_do_is_refused_or_ignored_by_name() -> None:
    script = {"turns": [HI], "repeat": True, "capabilities": {"turn_options": []}}
    async with open_sdk(script) as (_, client):
        hints = {"temperature": 0.5, "top_k": 3}  # which newer versions of the package do not name
        raw = await client.messages.with_raw_response.create(
            model="fake", max_tokens=1000, messages=[QUESTION], extra_body=hints
        )
        with pytest.raises(anthropic.BadRequestError, match="tool_choice"):
            await create(client, [QUESTION], tool_choice={"type": "any"})
    assert set(raw.headers["x-harness-ignored"].split(", ")) == {"max_tokens", "temperature", "top_k"}


@requirement("anthropic-surface:side-requests")
async def test_counting_tokens_begins_no_conversation() -> None:
    async with open_sdk([HI]) as (server, client):
        counted = await client.messages.count_tokens(model="fake", messages=[QUESTION], tools=[WEATHER])
        assert counted.input_tokens > 0
        assert await conversations(server) == []


@requirement("anthropic-surface:side-requests")
async def test_a_single_token_is_meant_by_everybody_but_claude_code() -> None:
    async with open_sdk([HI]) as (server, client):
        probed = await create(
            client,
            [QUESTION],
            max_tokens=1,
            tools=[],
            extra_headers={"user-agent": "claude-cli/2.1.332 (external, cli)"},
        )
        assert (said(probed), probed.stop_reason) == ("ok", "max_tokens")
        assert await conversations(server) == []
        assert said(await create(client, [QUESTION], max_tokens=1, tools=[])) == "Hi."
        assert len(await conversations(server)) == 1
