"""Callers who want what is not theirs, or send what no program should choke on, beside the native surface."""

from __future__ import annotations

import json
import re
from typing import Any

import anyio
import openai
import pytest

from contract_tests.llm_suite import begin, is_waiting, open_house, open_server, until
from contract_tests.requirements import requirement
from contract_tests.surfaces.http import client_of
from contract_tests.surfaces.mcp_server.clients import OFFER
from contract_tests.surfaces.openai_api.chat import open_place
from harness.errors import ConfigError
from harness.settings import Rights
from harness.surfaces.compatible.settings import CompatibleSettings
from harness.surfaces.mcp_server.http import mcp_dialect
from harness.surfaces.server import serve
from harness.surfaces.tokens import Token
from harness.wire.hops import HOPS_HEADER
from harness.wire.json_text import with_paired_surrogates

HELLO: list[Any] = [{"text": "Hello."}]
ROUND: list[Any] = [
    {"calls": [{"name": "weather", "id": "oslo"}, {"name": "weather", "id": "rome"}]},
    {"text": "{{results.oslo}}, {{results.rome}}"},
]
TOKENS = [Token("a", "ada", Rights(programs=False)), Token("b", "bob", Rights(programs=False))]
ACCEPT = {"Accept": "application/json, text/event-stream"}
CHAT = "/openai/v1/chat/completions"
MESSAGES = "/anthropic/v1/messages"
SERVICE = "/ujmw/fake/IConversationalLLM/BeginConversation"


@requirement("openai:restart")
async def test_a_mistake_about_a_conversation_that_was_found_again_does_not_end_it() -> None:
    async with open_place([ROUND]) as place:
        chat = place.chat()
        await chat.say("How is the weather?")
        settings = CompatibleSettings(abandoned_seconds=20)  # less than this machine has been up
        async with serve(
            place.house, connectors=["fake"], tokens=place.server.tokens, compatible=settings
        ) as next_server:
            chat.client = place.client(base_url=f"{next_server.url}/openai/v1")
            with pytest.raises(openai.BadRequestError) as partial:
                await chat.answer({"oslo": "rain"})
            heard = await chat.answer({"rome": "sun"})

    assert partial.value.code == "missing_tool_results"
    assert heard.message.content == "rain, sun"
    assert place.count("opened") == 1


@requirement("openai:restart")
async def test_a_call_of_the_same_id_on_another_surface_is_not_answered() -> None:
    async with open_place(
        [[{"calls": [{"name": "weather", "id": "call_1"}]}, {"text": "{{results.call_1}}"}]]
    ) as place:
        house = place.house.for_owner("local", place.server.tokens[0].rights)
        elsewhere = await begin(house)
        await until(house, elsewhere, is_waiting)
        chat = place.chat()
        chat.messages = [
            {"role": "user", "content": "Long ago."},
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
                ],
            },
        ]
        await chat.answer({"call_1": "fog"})
        state = await house.poll_turn(*elsewhere)

    assert chat.conversation != elsewhere[0]
    assert [one.request_id for one in state.pending_requests] == ["call_1"]


@requirement("openai:restart")
@pytest.mark.parametrize("waits", [True, False])
async def test_a_conversation_that_somebody_deleted_is_begun_anew_with_its_history(waits: bool) -> None:
    async with open_place([ROUND, HELLO]) as place:
        chat = place.chat()
        await chat.say("How is the weather?")
        if not waits:
            await chat.answer({"oslo": "rain", "rome": "sun"})
        deleted = chat.conversation
        async with client_of(place.server) as client:
            (await client.delete(f"/v1/conversations/{deleted}")).raise_for_status()
        heard = await (chat.answer({"oslo": "rain", "rome": "sun"}) if waits else chat.say("And you?"))

    assert heard.finish_reason == "tool_calls"
    assert chat.conversation != deleted
    assert [len(one.history) for one in place.connector.opened] == [0, 3 if waits else 4]


@requirement("mcp-server:http", "http:owners")
async def test_a_session_of_mcp_answers_only_to_the_owner_who_opened_it() -> None:
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "stranger", "version": "1"},
        },
    }
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    async with (
        open_server([HELLO], tokens=TOKENS, also=(mcp_dialect(OFFER),)) as server,
        client_of(server) as ada,
        client_of(server, token=1) as bob,
    ):
        opened = await ada.post("/mcp", json=initialize, headers=ACCEPT)
        headers = {**ACCEPT, "mcp-session-id": opened.headers["mcp-session-id"]}
        used = await bob.post("/mcp", json=listing, headers=headers)
        ended = await bob.delete("/mcp", headers=headers)
        own = await ada.post("/mcp", json=listing, headers=headers)

    assert (used.status_code, ended.status_code, own.status_code) == (404, 404, 200)


@requirement("stacking:loop")
@pytest.mark.parametrize("path", [CHAT, MESSAGES, "/mcp"])
async def test_a_circle_is_told_on_every_surface(path: str) -> None:
    bodies: dict[str, Any] = {
        CHAT: {"model": "fake", "messages": [{"role": "user", "content": "Go."}]},
        MESSAGES: {"model": "fake", "max_tokens": 9, "messages": [{"role": "user", "content": "Go."}]},
        "/mcp": {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "begin_conversation",
                "arguments": {},
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": {"name": "stranger", "version": "1"},
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        },
    }
    headers = {
        **ACCEPT,
        **({"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "begin_conversation"}
           if path == "/mcp" else {}),
    }  # fmt: skip
    with anyio.fail_after(20):
        async with (
            open_house([HELLO]) as house,
            serve(house, connectors=["fake"], also=(mcp_dialect(OFFER),)) as server,
            client_of(server) as client,
        ):
            told = await client.post(path, json=bodies[path], headers={**headers, HOPS_HEADER: house.instance_id})

    assert "in a circle" in told.text, told.text
    assert "no model" not in told.text


@requirement("surfaces:odd-bodies")
@pytest.mark.parametrize("path", [CHAT, MESSAGES, f"{MESSAGES}/count_tokens", SERVICE])
@pytest.mark.parametrize(
    "odd", ["[" * 900 + r'"\ud800"' + "]" * 900, "[" * 100_000 + "]" * 100_000, "NaN", "-Infinity", "1e999"]
)
async def test_numbers_that_are_none_and_endless_nesting_are_the_callers_mistake(path: str, odd: str) -> None:
    body = f'{{"model": "fake", "max_tokens": 9, "messages": [{{"role": "user", "content": "Go."}}], "more": {odd}}}'
    with anyio.fail_after(20):
        async with open_server([HELLO]) as server, client_of(server) as client:
            answer = await client.post(path, content=body)

    assert answer.status_code == (200 if path == SERVICE else 400)
    assert "not JSON" in answer.text or "nested too deeply" in answer.text


@requirement("surfaces:odd-bodies")
async def test_arguments_in_a_history_may_be_nested_as_deeply_as_a_model_likes() -> None:
    deep = "[" * 3000 + "]" * 3000
    async with open_place([HELLO]) as place:
        chat = place.chat()
        call = {"id": "x", "type": "function", "function": {"name": "weather", "arguments": deep}}
        chat.messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "tool_calls": [call]}]
        heard = await chat.answer({"x": "rain"})

    assert heard.message.content == "Hello."
    assert place.connector.opened[0].history[1].tool_calls[0].arguments_json == deep


@requirement("surfaces:odd-bodies")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("odd", ['{"n":NaN}', '{"n":1e999}', "[" * 3000 + "]" * 3000])
async def test_arguments_that_are_no_json_for_a_client_are_told_as_text(odd: str, stream: bool) -> None:
    body = {
        "model": "fake",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Go."}],
        "tools": [{"name": "weather", "input_schema": {"type": "object"}}],
        "stream": stream,
    }
    with anyio.fail_after(20):
        async with (
            open_server([[{"calls": [{"name": "weather", "arguments_json": odd, "id": "x"}]}]]) as server,
            client_of(server) as client,
        ):
            told = await client.post(MESSAGES, json=body)

    assert told.status_code == 200
    if stream:
        events = [json.loads(line[6:]) for line in told.text.splitlines() if line.startswith("data: ")]
        given = json.loads("".join(one.get("delta", {}).get("partial_json", "") for one in events))
    else:
        [given] = [block["input"] for block in told.json()["content"]]
    assert given == {"input": odd}


@requirement("surfaces:odd-bodies")
async def test_a_title_request_without_an_end_holds_nobody_up() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    body = {
        "model": "fake",
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "<session>" + " " * 2_000}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    }
    async with open_server([HELLO]) as server, client_of(server) as client:
        with anyio.fail_after(10):
            answer = await client.post(MESSAGES, json=body, headers={"User-Agent": "claude-cli/2"})

    assert answer.json()["content"] == [{"type": "text", "text": "Hello."}]  # of the agent, as there was no session


@requirement("surfaces:odd-bodies")
@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_thousands_of_messages_of_one_side_hold_nobody_up(path: str) -> None:
    body = {"model": "fake", "max_tokens": 9, "messages": [{"role": "user", "content": "Go."}] * 4_000}
    async with open_server([HELLO]) as server, client_of(server) as client:
        with anyio.fail_after(15):
            answer = await client.post(path, json=body)

    assert "Hello." in answer.text


@requirement("openai:ends")
@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_what_a_peer_tells_in_an_error_is_no_header_of_ours(path: str) -> None:
    error = {"code": "peer_lost", "message": "Gone.", "detail": {"conversation_id": "c_\u2603\r\nSet-Cookie: a=b"}}
    body = {"model": "fake", "max_tokens": 9, "messages": [{"role": "user", "content": "Go."}]}
    with anyio.fail_after(20):
        async with open_server([[{"error": error}]]) as server, client_of(server) as client:
            answer = await client.post(path, json=body)

    assert "Gone." in answer.text
    assert re.fullmatch(r"c_[0-9a-f]+", answer.headers["x-harness-conversation"])
    assert "set-cookie" not in answer.headers


@requirement("openai:ends")
@pytest.mark.parametrize("base", ["", "/v1", "/openai", "/anthropic/v1"])
async def test_a_client_with_a_wrong_base_url_is_told_the_right_one(base: str) -> None:
    async with open_place([HELLO]) as place:
        url = place.server.url
        with pytest.raises(openai.NotFoundError, match=f"{url}/openai/v1'"):
            await place.client(base_url=url + base).chat.completions.create(
                model="fake", messages=[{"role": "user", "content": "Go."}]
            )
        async with client_of(place.server) as client:
            told = await client.post(f"{base}/v1/messages", json={})

    assert told.status_code == 404
    assert f"{url}/anthropic'" in told.json()["error"]["message"]


@requirement("R-K3")
@pytest.mark.parametrize("origin", ["*", "null", "evil", "http://127.0.0.1:8900/", "HTTP://a.example", ""])
async def test_an_origin_that_no_page_has_is_refused_at_the_start(origin: str) -> None:
    with pytest.raises(ConfigError, match="is no origin of a page"):
        async with open_server([HELLO], allowed_origins=[origin]):
            raise AssertionError("it started")


@requirement("http:text")
@pytest.mark.parametrize(
    ("given", "mended"),
    [
        (r'"\ud800"', r'"\ufffd"'),
        (r'"\ud83d\ude00"', r'"\ud83d\ude00"'),
        (r'"\\ud800"', r'"\\ud800"'),
        (r'"\\\ud800"', r'"\\\ufffd"'),
        (r'{"n": 1.10, "n": "\udc00\ud800\n"}', r'{"n": 1.10, "n": "\ufffd\ufffd\n"}'),
    ],
)
def test_half_a_pair_is_mended_and_nothing_else_is_touched(given: str, mended: str) -> None:
    assert with_paired_surrogates(given) == mended


@requirement("R-K3")
@pytest.mark.parametrize("name", ["mine.example:8800", "http://mine.example", ""])
async def test_a_host_that_nobody_can_have_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(ConfigError, match="is no host name"):
        async with open_server([HELLO], allowed_hosts=[name]):
            raise AssertionError("it started")


@requirement("surfaces:odd-bodies")
async def test_a_caller_writes_no_lines_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    body = {"options": {}, "_": {"trace": "1\nharness: ERROR: all is lost"}}
    with caplog.at_level("INFO", "harness"):
        async with open_server([HELLO]) as server, client_of(server) as client:
            (await client.post(SERVICE, json=body)).raise_for_status()

    [told] = [one.getMessage() for one in caplog.records if "trace=" in one.getMessage()]
    assert "\n" not in told
