"""The scripted model as a client of the Anthropic Messages API meets it on the wire."""

import json
from pathlib import Path

import anyio
import httpx2
import pytest

from contract_tests.requirements import requirement
from contract_tests.scripted_model.wire import TOOLS, body, called, events_in, model_and_client
from harness.errors import ConfigError
from harness.scripted_model import ScriptedModel, open_scripted_model

USAGE = {"input_tokens": 1500, "cached_input_tokens": 300, "cache_write_tokens": 200, "output_tokens": 50}
WIRE_USAGE = {
    "input_tokens": 1000,
    "cache_read_input_tokens": 300,
    "cache_creation_input_tokens": 200,
    "output_tokens": 50,
}


@requirement("scripted-model:messages:stream-and-whole")
async def test_a_stream_has_the_events_of_the_api_in_their_order() -> None:
    entry = {
        "thinking": "Hm.",
        "text": ["Let me ", "look."],
        "calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "c1"}, {"name": "get_time"}],
        "usage": USAGE,
    }
    async with model_and_client(entry) as (_, client):
        response = await client.post("/v1/messages", json=body(stream=True))

    events = events_in(response.text)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert [event["type"].removeprefix("content_block_") for event in events] == [
        "message_start",
        *("start", "delta", "delta", "stop"),
        *("start", "delta", "delta", "stop"),
        *("start", "delta", "delta", "delta", "stop"),
        *("start", "delta", "delta", "delta", "stop"),
        "message_delta",
        "message_stop",
    ]
    assert events[0]["message"]["content"] == []
    assert events[0]["message"]["model"] == "claude-test"
    assert events[0]["message"]["usage"] == WIRE_USAGE | {"output_tokens": 1}
    blocks = [event["content_block"] for event in events if "content_block" in event]
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use", "tool_use"]
    assert blocks[2] == {"type": "tool_use", "id": "c1", "name": TOOLS[0], "input": {}}
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert [delta["text"] for delta in deltas if delta["type"] == "text_delta"] == ["Let me ", "look."]
    first_call = [event["delta"]["partial_json"] for event in events if event.get("index") == 2 and "delta" in event]
    assert json.loads("".join(first_call)) == {"city": "Oslo"}
    assert events[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert events[-2]["usage"] == WIRE_USAGE


@requirement("scripted-model:messages:stream-and-whole")
async def test_without_stream_the_answer_is_one_message() -> None:
    entry = {
        "text": ["a", "b"],
        "calls": [{"name": "get_time", "arguments": {"zone": "UTC"}, "id": "c1"}],
        "usage": USAGE,
    }
    async with model_and_client(entry) as (_, client):
        message = (await client.post("/v1/messages?beta=true", json=body())).json()

    assert message["content"] == [
        {"type": "text", "text": "ab"},
        {"type": "tool_use", "id": "c1", "name": TOOLS[1], "input": {"zone": "UTC"}},
    ]
    assert message["stop_reason"] == "tool_use"
    assert message["usage"] == WIRE_USAGE


async def test_a_given_stop_reason_is_passed_on_as_it_is() -> None:
    async with model_and_client({"text": "I", "stop": "a_new_reason"}) as (_, client):
        assert (await client.post("/v1/messages", json=body())).json()["stop_reason"] == "a_new_reason"


@requirement("scripted-model:messages:stream-and-whole")
async def test_each_event_is_one_chunk_on_the_wire() -> None:
    async with open_scripted_model([{"text": ["a", "b"]}]) as model:
        port = int(model.url.rpartition(":")[2])
        content = json.dumps(body(stream=True)).encode()
        head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(content)}\r\n\r\n"
        received = b""
        async with await anyio.connect_tcp("127.0.0.1", port) as socket:
            await socket.send(head.encode() + content)
            async for data in socket:
                received += data

    chunked = received.partition(b"\r\n\r\n")[2]
    chunks: list[bytes] = []
    while chunked:
        size, _, chunked = chunked.partition(b"\r\n")
        chunks.append(chunked[: int(size, 16)])
        chunked = chunked[int(size, 16) + 2 :]
    assert chunks.pop() == b""
    assert len(chunks) == 7
    assert all(len(events_in(chunk.decode())) == 1 for chunk in chunks)


@requirement("scripted-model:numbers:exact")
@pytest.mark.parametrize("stream", [True, False])
async def test_raw_arguments_arrive_letter_by_letter(stream: bool) -> None:
    raw = '{"price": 1.10, "n": 123456789012345678901234567890, "n": 1e2}'
    async with model_and_client({"calls": [{"name": "get_time", "arguments_json": raw}]}) as (_, client):
        text = (await client.post("/v1/messages", json=body(stream=stream))).text

    if stream:
        text = "".join(event["delta"].get("partial_json", "") for event in events_in(text) if "delta" in event)
        assert text == raw
    else:
        assert f'"input": {raw}' in text


@requirement("scripted-model:results:quoted")
async def test_the_answer_quotes_what_the_request_holds() -> None:
    result = [{"type": "text", "text": "7 "}, {"type": "image", "source": {}}, {"type": "text", "text": "degrees"}]
    history = (*called("c1", TOOLS[0], result), *called("c2", TOOLS[1], "noon", is_error=True))
    async with model_and_client({"text": "{{results.c1}} at {{results.get_time}}"}) as (model, client):
        message = (await client.post("/v1/messages", json=body(*history))).json()

    assert message["content"][0]["text"] == "7 degrees at noon"
    past = model.requests[0].past_calls
    assert [(call.call_id, call.name, call.result, call.is_error) for call in past] == [
        ("c1", TOOLS[0], "7 degrees", False),
        ("c2", TOOLS[1], "noon", True),
    ]


@requirement("scripted-model:end:says-so")
async def test_past_its_end_the_script_says_so_each_time() -> None:
    async with model_and_client({"text": "only"}) as (model, client):
        await client.post("/v1/messages", json=body())
        beyond = [await client.post("/v1/messages", json=body(stream=True)) for _ in range(2)]

    for response in beyond:
        assert response.status_code == 400
        error = response.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert "it has 1 entry and this is model call 2" in error["message"]
    assert [request.entry for request in model.requests] == [1, None, None]


@requirement("scripted-model:side-requests:take-no-entry")
async def test_probes_counts_and_knocking_take_no_entry() -> None:
    async with model_and_client({"text": "mine"}) as (model, client):
        assert (await client.head("/")).status_code == 200
        assert (await client.get("/v1/nothing")).status_code == 404
        assert (await client.post("/api/event_logging", json={})).status_code == 404
        count = await client.post("/v1/messages/count_tokens?beta=true", json=body())
        probe = await client.post("/v1/messages?beta=true", json=body(max_tokens=1))
        answer = await client.post("/v1/messages", json=body())

    assert count.json()["input_tokens"] > 10
    assert probe.json()["stop_reason"] == "max_tokens"
    assert answer.json()["content"][0]["text"] == "mine"
    assert [request.path for request in model.side_requests] == [
        "/",
        "/v1/nothing",
        "/api/event_logging",
        "/v1/messages/count_tokens?beta=true",
        "/v1/messages?beta=true",
    ]


@requirement("scripted-model:failures:error-drop-hang")
@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "invalid_request_error"), (429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error")],
)
async def test_an_error_has_the_status_type_and_retry_after_of_the_api(status: int, kind: str) -> None:
    entry = {"error": {"status": status, "message": "slow down", "retry_after": 1.5}}
    async with model_and_client(entry) as (_, client):
        response = await client.post("/v1/messages", json=body(stream=True))

    assert response.status_code == status
    assert response.headers["retry-after"] == "1.5"
    assert response.json()["error"] == {"type": kind, "message": "slow down"}


@requirement("scripted-model:failures:error-drop-hang")
async def test_a_dropped_stream_ends_in_the_middle_of_its_last_block() -> None:
    text = ""
    async with model_and_client({"text": "half a", "drop": True}, {"text": "whole"}) as (model, client):
        with pytest.raises(httpx2.RemoteProtocolError):
            async with client.stream("POST", "/v1/messages", json=body(stream=True)) as response:
                async for piece in response.aiter_text():
                    text += piece
        again = await client.post("/v1/messages", json=body())

    assert [event["type"] for event in events_in(text)] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
    ]
    assert again.json()["content"][0]["text"] == "whole"
    assert model.requests[0].ending == "dropped"


@requirement("scripted-model:failures:error-drop-hang")
async def test_without_stream_a_drop_sends_no_byte() -> None:
    async with model_and_client({"drop": True}) as (_, client):
        with pytest.raises(httpx2.RemoteProtocolError, match="without sending a response"):
            await client.post("/v1/messages", json=body())


@requirement("scripted-model:failures:error-drop-hang")
async def test_a_hanging_answer_shows_its_content_and_ends_when_the_client_leaves() -> None:
    text = ""
    async with model_and_client({"text": "so far", "hang": True}, {"text": "next"}) as (model, client):
        with anyio.fail_after(5):
            async with client.stream("POST", "/v1/messages", json=body(stream=True)) as response:
                async for piece in response.aiter_text():
                    text += piece
                    if "so far" in text:
                        break
                request = await model.wait_for_request(1)
                assert request.ending is None
            assert await request.wait_ended() == "client_left"
            assert (await client.post("/v1/messages", json=body())).status_code == 200


@requirement("scripted-model:failures:error-drop-hang")
@pytest.mark.parametrize("entry", [{"text": "late", "delay_seconds": 3600}, {"hang": True}])
async def test_a_client_that_leaves_before_the_first_byte_is_noticed(entry: dict[str, object]) -> None:
    async with model_and_client(entry) as (model, client):
        with anyio.fail_after(5):
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(lambda: client.post("/v1/messages", json=body()))
                await model.wait_for_request(1)
                waiting.cancel_scope.cancel()
            assert await model.requests[0].wait_ended() == "client_left"


async def test_closing_the_model_ends_what_still_hangs_at_once() -> None:
    endings: list[str] = []

    async def ask(url: str) -> None:
        async with httpx2.AsyncClient(trust_env=False) as client:
            with pytest.raises(httpx2.RemoteProtocolError):
                await client.post(f"{url}/v1/messages", json=body(stream=True))

    async def watch(model: ScriptedModel) -> None:
        endings.append(await model.requests[0].wait_ended())

    with anyio.fail_after(5):
        async with anyio.create_task_group() as waiting, open_scripted_model([{"hang": True}]) as model:
            waiting.start_soon(ask, model.url)
            await model.wait_for_request(1)
            waiting.start_soon(watch, model)
    assert endings == ["server_closed"]


async def test_delays_come_before_the_answer_and_between_its_chunks() -> None:
    started = anyio.current_time()
    async with model_and_client({"text": "a", "delay_seconds": 0.02, "chunk_delay_seconds": 0.01}) as (_, client):
        await client.post("/v1/messages", json=body(stream=True))

    assert anyio.current_time() - started >= 0.05


async def test_a_body_that_is_no_json_object_is_refused_and_the_connection_goes_on() -> None:
    async with model_and_client({"text": "a"}) as (model, client):
        assert (await client.post("/v1/messages", content=b"[1")).status_code == 400
        assert (await client.post("/v1/messages", json=body())).status_code == 200
    assert [request.body_text for request in model.side_requests] == ["[1"]


@requirement("scripted-model:log:every-request")
async def test_the_log_has_every_request_as_it_came_and_no_key(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    raw = '{"max_tokens": 9,\n "n": 1.10, "text": "a\u2028b", "messages": []}'
    headers = {"x-api-key": "sk-secret", "authorization": "Bearer secret", "user-agent": "test/1"}
    async with model_and_client({"text": "a"}, log=log) as (_, client):
        await client.head("/")
        await client.post("/v1/messages", content=raw.encode(), headers=headers)
        written = log.read_text(encoding="utf-8")

    lines = written.split("\n")
    knock, call = (json.loads(line) for line in lines if line)
    assert (knock["method"], knock["path"], knock["entry"], knock["body"]) == ("HEAD", "/", None, None)
    assert (call["method"], call["path"], call["entry"], call["body"]) == ("POST", "/v1/messages", 1, json.loads(raw))
    assert call["headers"]["user-agent"] == "test/1"
    assert call["headers"]["x-api-key"] == call["headers"]["authorization"] == "<key>"
    assert '"n": 1.10' in lines[1]
    assert "secret" not in written
    assert call["at"] >= knock["at"]


async def test_a_port_or_log_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    async with open_scripted_model([{"text": "a"}]) as model:
        port = int(model.url.rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with open_scripted_model([{"text": "a"}], port=port):
                pass
    with pytest.raises(ConfigError, match="cannot write the log"):
        async with open_scripted_model([{"text": "a"}], log=tmp_path):
            pass
