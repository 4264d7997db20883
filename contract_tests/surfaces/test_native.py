"""The native surface as a stranger's HTTP client sees it: routes, bodies, errors, owners, departure and shutdown."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from contract_tests.llm_suite import Peer, open_house, open_server
from contract_tests.requirements import requirement
from contract_tests.surfaces.http import begin_turn, chunked, client_of, problem_of
from harness.contract import TurnState
from harness.settings import Rights
from harness.surfaces.native import OPERATIONS
from harness.surfaces.server import Server, serve
from harness.surfaces.tokens import Token

ROUND = [{"calls": [{"name": "weather", "arguments": {"city": "Oslo"}, "id": "oslo"}]}, {"text": "{{results.oslo}}"}]
HANG = [{"text": "one"}, {"hang": True}]


@asynccontextmanager
async def native(
    script: object, peer: Peer | None = None, **options: Any
) -> AsyncGenerator[tuple[Server, httpx2.AsyncClient]]:
    with anyio.fail_after(20):
        async with open_server(script, peer, **options) as server, client_of(server) as client:
            yield server, client


@requirement("http:routes")
async def test_a_stranger_runs_a_turn_with_plain_requests() -> None:
    async with native([ROUND]) as (_, client):
        begun = await client.post("/v1/conversations", json={"tools": [{"name": "weather"}]})
        conversation = f"/v1/conversations/{begun.json()['conversation_id']}"
        message = {"content": [{"type": "text", "text": "How is Oslo?"}]}
        submitted = await client.post(f"{conversation}/turns", json=message)
        turn = f"{conversation}/turns/{submitted.json()['turn_id']}"
        polled = await client.get(turn, params={"max_wait_ms": 5000})
        waiting = (await client.get("/v1/requests")).json()["requests"]
        answers = [{"request_id": "oslo", "content": [{"type": "text", "text": "rain"}]}]
        answered = await client.post(f"{turn}/responses", json={"responses": answers})
        state: dict[str, Any] = {"status": "running", "sequence_no": polled.json()["sequence_no"]}
        items: list[dict[str, Any]] = []
        while state["status"] == "running":
            params = {"since_sequence_no": state["sequence_no"], "max_wait_ms": 5000}
            state = (await client.get(turn, params=params)).json()
            items += state["new_output_items"]
        one = (await client.get(conversation)).json()
        listed = (await client.get("/v1/conversations")).json()["conversations"]
        exported = (await client.get(f"{conversation}/export")).json()
        ended = await client.post(f"{conversation}/end")
        deleted = await client.delete(conversation)
        gone = await client.get(conversation)

    statuses = [one.status_code for one in (begun, submitted, polled, answered, ended, deleted, gone)]
    assert statuses == [201, 201, 200, 204, 204, 204, 404]
    [request] = polled.json()["pending_requests"]
    assert (request["request_id"], request["tool_name"], request["arguments_json"]) == (
        "oslo",
        "weather",
        '{"city":"Oslo"}',
    )
    assert [one["request"] for one in waiting] == [request]
    assert [item["text"] for item in items if item["kind"] == "text_delta"] == ["rain"]
    assert (state["status"], state["stop_reason"]) == ("completed", "end_turn")
    assert listed == [one]
    assert one["first_message"] == "How is Oslo?"
    assert [item["kind"] for item in exported["turns"][0]["items"]][-1] == "turn_ended"


@requirement("http:routes")
async def test_the_other_routes_reach_their_operations() -> None:
    async with native([ROUND]) as (_, client):
        conversation = (
            f"/v1/conversations/{(await client.post('/v1/conversations', json={})).json()['conversation_id']}"
        )
        source = {"tool_sources": [{"name": "s", "kind": "mcp_http", "url": "http://127.0.0.1:1/"}]}
        sources = await client.put(f"{conversation}/tool-sources", json=source)
        policy = await client.put(f"{conversation}/request-policy", json={"mode": "read_only"})
        forked = await client.post(f"{conversation}/fork")
        capabilities = await client.post("/v1/capabilities")
        chosen = await client.post("/v1/capabilities", json={"connector": "fake"})
        connectors = await client.get("/v1/connectors")
        turn = await begin_turn(client)
        cancelled = await client.post(f"{turn}/cancel")
        health = await client.get("/healthz")

    assert (sources.status_code, policy.status_code, cancelled.status_code) == (204, 204, 204)
    assert (forked.status_code, problem_of(forked)["code"]) == (501, "not_supported")
    assert capabilities.json() == chosen.json()
    assert capabilities.json()["inner"]["name"] == "fake"
    assert connectors.json() == {"connectors": [{"name": "fake", "is_default": True}]}
    assert health.json() == {"status": "ok"}


@requirement("http:problems")
@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"content": [{"type": "text"}]}', "content.0.text.text"),
        (b'{"content": "hello"}', "content"),
        (b"{}", "content"),
        (b'{"content": [], "options": {"tool_mode": "sometimes"}}', "options.tool_mode"),
        (b"[1]", ""),
        (b"{nope", ""),
        (b'{"content": "\xff"}', ""),
    ],
)
async def test_a_body_that_cannot_be_used_is_a_problem_that_names_the_field(body: bytes, field: str) -> None:
    async with native([HANG]) as (_, client):
        turns = (await begin_turn(client)).rpartition("/")[0]
        problem = problem_of(await client.post(turns, content=body))

    assert (problem["code"], problem["status"], problem["title"]) == ("invalid_argument", 400, "Invalid argument")
    assert json.loads(problem["detail_json"])["errors"][0]["field"] == field
    assert field in problem["detail"]


@requirement("http:problems", "R-K2")
async def test_a_problem_with_a_body_never_repeats_its_values() -> None:
    async with native([HANG]) as (_, client):
        conversation = (await begin_turn(client)).partition("/turns")[0]
        header = {"name": "Authorization", "value": {"secret": "sesame-1234"}}
        body = {"tool_sources": [{"name": "s", "kind": "mcp_http", "headers": [header]}]}
        answer = await client.put(f"{conversation}/tool-sources", json=body)

    assert answer.status_code == 400
    assert "tool_sources.0.headers.0.value" in answer.text
    assert "sesame" not in answer.text


@requirement("http:problems")
async def test_errors_have_our_code_and_their_status() -> None:
    async with native([ROUND]) as (_, client):
        turn = await begin_turn(client)
        conversation, turns = turn.partition("/turns")[0], turn.rpartition("/")[0]
        found = {
            name: problem_of(answer)
            for name, answer in {
                "turn": await client.get(f"{turns}/never"),
                "busy": await client.post(turns, json={"content": [{"type": "text", "text": "more"}]}),
                "number": await client.get(turn, params={"since_sequence_no": "minus"}),
                "few": await client.get(turn, params={"max_items": "0"}),
                "last": await client.get(turn, headers={"Accept": "text/event-stream", "Last-Event-ID": "x"}),
                "content": await client.post(
                    turns.replace(conversation, await _new(client)), json={"content": [{"type": "hologram"}]}
                ),
                "path": await client.get("/v2/conversations"),
                "method": await client.put("/v1/conversations", json={}),
            }.items()
        }

    assert {name: (problem["status"], problem["code"]) for name, problem in found.items()} == {
        "turn": (404, "unknown_turn"),
        "busy": (409, "turn_in_progress"),
        "number": (400, "invalid_argument"),
        "few": (400, "invalid_argument"),
        "last": (400, "invalid_argument"),
        "content": (422, "content_not_supported"),
        "path": (404, "invalid_argument"),
        "method": (405, "invalid_argument"),
    }
    assert "'since_sequence_no'" in found["number"]["detail"]
    assert "'Last-Event-ID'" in found["last"]["detail"]
    assert "/openapi.json" in found["path"]["detail"]


async def _new(client: httpx2.AsyncClient) -> str:
    return f"/v1/conversations/{(await client.post('/v1/conversations', json={})).json()['conversation_id']}"


@requirement("http:problems")
async def test_a_body_larger_than_configured_is_refused_and_the_server_goes_on() -> None:
    async with native([HANG], max_body_bytes=100_000) as (_, client):
        turns = (await begin_turn(client)).rpartition("/")[0]
        refused = await client.post(turns, content=chunked(b"x" * 300_000))
        fine = await client.get("/healthz")

    assert "'max_body_bytes'" in problem_of(refused)["detail"]
    assert fine.status_code == 200


@requirement("http:text", "R-J3")
@pytest.mark.parametrize(
    ("raw", "heard"),
    [
        (rb'"cut \ud83d off"', "cut \ufffd off"),
        (b'"bytes \xed\xa0\xbd of a half"', "bytes \ufffd of a half"),
        (rb'"pair \ud83d\ude80"', "pair \U0001f680"),
        ('"line\u2028para\u2029next\x85 \U0001f680"'.encode(), "line\u2028para\u2029next\x85 \U0001f680"),
    ],
)
async def test_odd_text_in_a_body_reaches_the_peer(raw: bytes, heard: str) -> None:
    peer = Peer()
    async with native([[{"text": "ok"}]], peer) as (_, client):
        turns = f"{await _new(client)}/turns"
        answer = await client.post(turns, content=b'{"content": [{"type": "text", "text": %s}]}' % raw)
        await peer.has_seen("message")

    assert answer.status_code == 201
    [message] = [one.value for one in peer.seen if one.what == "message"]
    assert [block.text for block in message] == [heard]  # type: ignore[attr-defined]


@requirement("http:text", "R-J1")
async def test_what_is_written_is_ascii_so_that_no_reader_cuts_it() -> None:
    text = "line\u2028para\u2029next\x85 \U0001f680"
    async with native([[{"text": text}]]) as (_, client):
        turn = await begin_turn(client)
        answer = await client.get(turn, params={"max_wait_ms": 5000})

    assert answer.content.isascii()
    assert len(answer.text.splitlines()) == 1
    assert answer.json()["new_output_items"][0]["text"] == text


@requirement("http:openapi")
async def test_the_description_has_every_route_and_no_loose_reference() -> None:
    async with native([HANG]) as (_, client):
        document = (await client.get("/openapi.json")).json()

    paths = {path: methods for path, methods in document["paths"].items() if not path.startswith("/ujmw/")}
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert described == {(one.method, one.path) for one in OPERATIONS} | {("GET", "/healthz")}
    names = set(document["components"]["schemas"])
    assert {"TurnState", "ConversationOptions", "HostRequest", "Problem"} <= {name.partition("-")[0] for name in names}
    assert _references(document) <= {f"#/components/schemas/{name}" for name in names}
    options = document["paths"]["/v1/conversations"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert "ConversationOptions" in options["$ref"]


def _references(value: object) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set[str]()
        return own.union(*(_references(member) for member in value.values()))
    if isinstance(value, list):
        return set[str]().union(*(_references(member) for member in value))
    return set()


@requirement("http:owners")
async def test_two_tokens_are_two_owners_who_do_not_see_each_other() -> None:
    tokens = (Token("token-of-ann", "ann"), Token("token-of-bob", "bob"))
    async with native([ROUND], tokens=tokens) as (server, ann), client_of(server, token=1) as bob:
        turn = await begin_turn(ann)
        conversation = turn.partition("/turns")[0]
        await ann.get(turn, params={"max_wait_ms": 5000})
        refused = [
            await bob.get(conversation),
            await bob.get(turn),
            await bob.get(turn, headers={"Accept": "text/event-stream"}),
            await bob.post(f"{turn}/cancel"),
            await bob.post(f"{turn}/responses", json={"responses": [{"request_id": "oslo"}]}),
            await bob.post(f"{conversation}/end"),
            await bob.delete(conversation),
            await bob.get(f"{conversation}/export"),
        ]
        seen_by_bob = [(await bob.get("/v1/conversations")).json(), (await bob.get("/v1/requests")).json()]
        status = (await ann.get(turn)).json()["status"]

    assert {(one.status_code, problem_of(one)["code"]) for one in refused} == {(404, "unknown_conversation")}
    assert seen_by_bob == [{"conversations": []}, {"requests": []}]
    assert status == "awaiting_host"


@requirement("http:rights")
async def test_a_remote_caller_names_no_program_no_file_and_no_other_directory(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    token = Token("t", "ann", Rights(programs=False, cwd_roots=(inside,)))
    async with native([HANG], tokens=(token,)) as (_, client):
        refused = [
            await client.post("/v1/conversations", json={"cwd": str(tmp_path)}),
            await client.post("/v1/conversations", json={"cwd": str(inside / "..")}),
            await client.post("/v1/conversations", json={"connector_options_json": '{"script": "/etc/passwd"}'}),
        ]
        conversation = await _new(client)
        source = {"name": "s", "kind": "mcp_stdio", "command": "sh"}
        refused.append(await client.put(f"{conversation}/tool-sources", json={"tool_sources": [source]}))
        refused.append(await client.put(f"{conversation}/request-policy", json={"mode": "bypass"}))
        allowed = await client.post("/v1/conversations", json={"cwd": str(inside)})

    assert {(one.status_code, problem_of(one)["code"]) for one in refused} == {(403, "forbidden")}
    assert allowed.status_code == 201


@requirement("http:departure")
async def test_a_client_that_goes_away_frees_its_long_poll() -> None:
    async with native([HANG]) as (server, client):
        turn = await begin_turn(client)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: client.get(turn, params={"since_sequence_no": 1, "max_wait_ms": 60_000}))
            await server.waiters.wait_for(1)
            group.cancel_scope.cancel()
        await server.waiters.wait_for(0)
        assert (await client.get(turn)).json()["status"] == "running"


@requirement("http:shutdown")
async def test_a_shutdown_answers_parked_polls_at_once_and_refuses_new_work() -> None:
    answers: list[httpx2.Response] = []
    with anyio.fail_after(5):
        async with open_server([HANG]) as server, client_of(server) as client:
            turn = await begin_turn(client)

            async def poll() -> None:
                answers.append(await client.get(turn, params={"since_sequence_no": 1, "max_wait_ms": 60_000}))

            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(poll)
                await server.waiters.wait_for(3)
                server.waiters.settle()
            refused = await client.post("/v1/conversations", json={})
            late = await client.get(turn, params={"since_sequence_no": 1, "max_wait_ms": 60_000})

    assert [(one.status_code, one.json()["status"]) for one in (*answers, late)] == [(200, "running")] * 4
    assert problem_of(refused)["code"] == "connector_unavailable"


@requirement("http:shutdown")
async def test_leaving_the_server_settles_polls_that_are_still_parked() -> None:
    states: list[str] = []

    async def poll(server: Server, turn: str) -> None:
        async with client_of(server) as client:
            answer = await client.get(turn, params={"since_sequence_no": 1, "max_wait_ms": 60_000})
            states.append(answer.json()["status"])

    with anyio.fail_after(5):
        async with open_house([HANG]) as house, anyio.create_task_group() as group, serve(house) as server:
            async with client_of(server) as client:
                turn = await begin_turn(client)
            group.start_soon(poll, server, turn)
            await server.waiters.wait_for(1)

    assert states == ["running"]


@requirement("http:shutdown")
async def test_a_server_that_is_cancelled_also_stops_in_order() -> None:
    states: list[str] = []
    servers: list[Server] = []

    async def poll(server: Server, turn: str) -> None:
        async with client_of(server) as client:
            answer = await client.get(turn, params={"since_sequence_no": 1, "max_wait_ms": 60_000})
            states.append(answer.json()["status"])

    with anyio.fail_after(5):
        async with open_house([HANG]) as house, anyio.create_task_group() as group:
            with anyio.CancelScope() as scope:
                async with serve(house) as server:
                    async with client_of(server) as client:
                        turn = await begin_turn(client)
                    group.start_soon(poll, server, turn)
                    await server.waiters.wait_for(1)
                    servers.append(server)
                    scope.cancel()
                    await anyio.sleep_forever()

    assert states == ["running"]
    with pytest.raises(OSError):
        await anyio.connect_tcp("127.0.0.1", int(servers[0].url.rpartition(":")[2]))


class _Recorder:
    """A harness that only notes what a poll asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def for_owner(self, owner: str, rights: Rights, hops: object = ()) -> Any:
        return self

    async def poll_turn(self, *asked: object) -> TurnState:
        self.asked.append(asked)
        return TurnState(status="running", sequence_no=0, last_activity_at=0, started_at=0)


@requirement("http:routes")
async def test_a_poll_waits_for_at_most_a_minute() -> None:
    recorder = _Recorder()
    async with serve(recorder) as server, client_of(server) as client:
        await client.get("/v1/conversations/c/turns/t")
        await client.get("/v1/conversations/c/turns/t", params={"max_wait_ms": 600_000, "max_items": 7})
    assert recorder.asked == [("c", "t", 0, 0, 1000), ("c", "t", 0, 60_000, 7)]
