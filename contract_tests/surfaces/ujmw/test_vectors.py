"""The golden vectors: literal bytes over a socket, as the stock .NET client sends them."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from contract_tests.llm_suite import Peer, open_house, open_server
from contract_tests.requirements import requirement
from contract_tests.surfaces.ujmw.bytes import SERVICE, called, chunked, post, sent
from harness.contract import LlmCapabilities, TurnState
from harness.settings import Rights
from harness.surfaces.server import Server, serve
from harness.surfaces.tokens import Token
from harness.surfaces.ujmw.settings import UjmwSettings
from harness.surfaces.ujmw.surface import ujmw_dialect

ROUND = [{"calls": [{"name": "weather", "arguments": {"city": "Oslo"}, "id": "oslo"}]}, {"text": "{{results.oslo}}"}]
HANG = [{"text": "one"}, {"hang": True}]
BEGIN = b"""{
  "options": {
    "connector": "fake",
    "model": null,
    "systemPromptMode": 1,
    "tools": [
      {
        "name": "weather",
        "description": "Gr\xc3\xbc\xc3\x9fe",
        "outputSchemaJson": null,
        "readOnly": null
      }
    ],
    "history": null,
    "limits": null,
    "timeouts": {
      "toolMs": null,
      "approvalMs": null
    },
    "effort": 3,
    "outputDetail": 1
  }
}"""


@asynccontextmanager
async def serving(script: Any, peer: Peer | None = None, **options: Any) -> AsyncGenerator[Server]:
    with anyio.fail_after(20):
        async with open_server(script, peer, **options) as server:
            yield server


async def begun(server: Server, service: str = SERVICE, **options: Any) -> str:
    return (await called(server, "BeginConversation", service, options=options))["return"]


async def turn_of(server: Server, conversation_id: str) -> dict[str, str]:
    content = [{"type": "Text", "text": "hello"}]
    reply = await called(server, "SubmitUserMessage", conversationId=conversation_id, content=content)
    return {"conversationId": conversation_id, "turnId": reply["return"]}


@requirement("ujmw:bytes")
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
async def test_indented_bytes_with_numbers_for_enums_and_nulls_begin_a_conversation(mark: bytes) -> None:
    async with serving([ROUND]) as server:
        reply = await sent(server, post("BeginConversation", mark + BEGIN))
        [listed] = (await called(server, "ListConversations"))["return"]

    assert reply.status == 200
    assert list(reply.json) == ["return"]
    assert listed["conversationId"] == reply.json["return"]
    assert (listed["connector"], listed["state"]) == ("fake", "Open")


@requirement("ujmw:bytes")
async def test_the_same_in_chunks_with_an_upper_case_charset_and_by_asking_first() -> None:
    head = (b"Content-Type: application/json; charset=UTF-8", b"Transfer-Encoding: chunked")
    async with serving([ROUND]) as server:
        for size in (1, 7, 100_000):
            reply = await sent(server, post("BeginConversation", chunked(BEGIN, size), *head))
            assert reply.json["return"].startswith("c_")
        length = b"Content-Length: %d" % len(BEGIN)
        expecting = await sent(server, post("BeginConversation", BEGIN, head[0], length, b"Expect: 100-continue"))
        assert expecting.json["return"].startswith("c_")


@requirement("ujmw:replies")
async def test_a_void_operation_returns_nothing_and_a_function_only_its_result() -> None:
    async with serving([ROUND]) as server:
        conversation_id = await begun(server)
        ended = await sent(server, post("EndConversation", json.dumps({"conversationId": conversation_id}).encode()))
        capabilities = await called(server, "GetCapabilities")
        listed = await called(server, "ListRequests")

    assert ended.body == b"{}"
    assert list(capabilities) == ["return"]
    assert set(capabilities["return"]) >= {"supportsTools", "routableRequestKinds", "callIds"}
    assert listed == {"return": []}


@requirement("ujmw:faults")
async def test_an_unknown_conversation_is_a_fault_with_its_code_and_nothing_else() -> None:
    async with serving([ROUND]) as server:
        reply = await sent(server, post("CancelTurn", b'{"conversationId": "c_0", "turnId": "t"}'))

    assert reply.status == 200
    assert list(reply.json) == ["fault"]
    assert reply.json["fault"].startswith("[unknown_conversation] ")


@requirement("ujmw:faults")
async def test_a_caller_with_a_side_channel_gets_the_facts_of_a_fault_beside_it() -> None:
    async with serving([ROUND]) as server:
        turn = await turn_of(server, await begun(server))
        fault = await called(server, "SubmitResponses", **turn, responses=[{"requestId": "never"}], _={})

    assert set(fault) == {"fault", "_"}
    assert (fault["_"]["code"], fault["_"]["retryable"]) == ("unknown_request", "false")
    assert json.loads(fault["_"]["detailJson"])["rejected"][0]["request_id"] == "never"
    assert all(isinstance(text, str) for text in fault["_"].values())


@requirement("ujmw:auth")
async def test_no_or_a_wrong_token_is_401_and_a_forbidden_operation_403_both_in_plain_text(tmp_path: Path) -> None:
    body = b"{}"
    token = Token("sesame", "ann", Rights(programs=False, cwd_roots=(tmp_path,)))
    async with serving([ROUND], tokens=(token,)) as server:
        wrong = await sent(server, post("ListRequests", body).replace(b"TOKEN", b"wrong"))
        none = await sent(server, post("ListRequests", body).replace(b"Authorization", b"X-Other"))
        bare = await sent(server, post("ListRequests", body).replace(b"Bearer TOKEN", b"TOKEN"))
        other = await sent(server, post("ListRequests", body).replace(b"Bearer", b"token"))
        forbidden = await sent(server, post("BeginConversation", b'{"options": {"cwd": "/"}}'))
        foreign = await sent(server, post("ListRequests", body, b"Origin: http://evil", b"Content-Length: 2"))

    assert [wrong.status, none.status, bare.status, other.status, forbidden.status, foreign.status] == [
        401,
        401,
        200,
        200,
        403,
        403,
    ]
    assert wrong.text.startswith("[unauthorized] the bearer token is not one of this server's")
    assert wrong.headers["www-authenticate"] == "Bearer"
    assert forbidden.text.startswith("[forbidden] ")
    assert foreign.text.startswith("[forbidden] ")


@requirement("ujmw:side-channel")
async def test_a_side_channel_is_no_argument_and_is_traced(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "harness.surfaces.ujmw")
    async with serving([ROUND]) as server:
        accepted = await called(server, "BeginConversation", options=None, _={"correlationId": "x", "none": None})
        empty = await called(server, "ListRequests", _=None)
        broken = await called(server, "ListRequests", _=["x"])
        nested = await called(server, "ListRequests", _={"x": {"y": "z"}})
        header = b"X-Side-Channel: {}", b"Content-Length: 2"
        in_header = await sent(server, post("ListRequests", b"{}", *header))

    assert list(accepted) == ["return"]
    assert empty == in_header.json == {"return": []}
    assert broken["fault"].startswith("[invalid_argument] ")
    assert nested["fault"].startswith("[invalid_argument] ")
    assert "begin_conversation" in caplog.text
    assert "correlationId=x" in caplog.text


@requirement("ujmw:duplicates")
async def test_the_same_call_twice_does_the_thing_once() -> None:
    peer = Peer()
    hello = {"content": [{"type": "Text", "text": "hello"}]}
    async with serving([ROUND], peer) as server:
        options = {"clientKey": "k"}
        ids = [await begun(server, **options) for _ in range(2)]
        unkeyed = [
            (await called(server, "SubmitUserMessage", conversationId=ids[0], **hello))["return"] for _ in range(2)
        ]
        turn = {"conversationId": ids[0], "turnId": unkeyed[0]}
        await called(server, "PollTurn", **turn, maxWaitMs=5000)
        answer = {"responses": [{"requestId": "oslo", "content": [{"type": "text", "text": "rain"}]}]}
        answered = [await called(server, "SubmitResponses", **turn, **answer) for _ in range(2)]
        state = await polled_to_end(server, turn)
        late = await called(server, "SubmitResponses", **turn, **answer)
        other = await called(server, "SubmitResponses", **turn, responses=[{"requestId": "oslo", "isError": True}])
        delivered = [response.request_id for response in peer.answers]
        keyed = [
            (await called(server, "SubmitUserMessage", conversationId=ids[0], **hello, options=options))["return"]
            for _ in range(2)
        ]
        cancelled = [await called(server, "CancelTurn", conversationId=ids[0], turnId=keyed[0]) for _ in range(2)]
        ended = [await called(server, "EndConversation", conversationId=ids[0]) for _ in range(2)]

    assert ids[0] == ids[1]
    assert unkeyed[0] == unkeyed[1]
    assert keyed[0] == keyed[1] != unkeyed[0]
    assert [*answered, late, *cancelled, *ended] == [{}] * 7
    assert other["fault"].startswith("[already_answered] ")
    assert state["status"] == "Completed"
    assert delivered == ["oslo"]


async def polled_to_end(server: Server, turn: dict[str, str]) -> dict[str, Any]:
    state: dict[str, Any] = {"sequenceNo": 0, "status": "Running"}
    while state["status"] in ("Running", "AwaitingHost"):
        since = state["sequenceNo"]
        state = (await called(server, "PollTurn", **turn, sinceSequenceNo=since, maxWaitMs=5000))["return"]
    return state


class _Recorder:
    """A harness that only notes what a poll asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def for_owner(self, owner: str, rights: Rights, hops: object = ()) -> Any:
        return self

    async def poll_turn(self, *asked: object) -> TurnState:
        self.asked.append(asked)
        return TurnState(status="running", sequence_no=0, last_activity_at=0, started_at=0)

    async def get_capabilities(self, options: object) -> LlmCapabilities:
        raise RuntimeError("sesame")


@requirement("ujmw:waits")
async def test_what_a_poll_leaves_out_or_says_out_of_bounds_is_a_default_or_a_bound() -> None:
    recorder, ids = _Recorder(), {"conversationId": "c", "turnId": "t"}
    async with serve(recorder) as server:
        await called(server, "PollTurn", **ids)
        await called(server, "PollTurn", **ids, sinceSequenceNo=None, maxWaitMs=None, maxItems=None)
        await called(server, "PollTurn", **ids, sinceSequenceNo=-1, maxWaitMs=-1, maxItems=0)
        await called(server, "PollTurn", **ids, sinceSequenceNo=2**40, maxWaitMs=2**31 - 1, maxItems=7)
    assert recorder.asked == [
        ("c", "t", 0, 0, 1000),
        ("c", "t", 0, 0, 1000),
        ("c", "t", 0, 0, 1000),
        ("c", "t", 2**40, 60_000, 7),
    ]


@requirement("ujmw:waits")
async def test_a_client_that_leaves_frees_its_poll_and_a_stop_answers_the_others() -> None:
    states: list[str] = []
    refused: dict[str, str] = {}
    with anyio.fail_after(20):
        async with open_house([HANG]) as house, anyio.create_task_group() as group, serve(house) as server:
            turn = await turn_of(server, await begun(server))

            async def poll() -> None:
                reply = await called(server, "PollTurn", **turn, sinceSequenceNo=1, maxWaitMs=60_000)
                states.append(reply["return"]["status"])

            async with anyio.create_task_group() as leaving:
                leaving.start_soon(poll)
                await server.waiters.wait_for(1)
                leaving.cancel_scope.cancel()
            await server.waiters.wait_for(0)
            group.start_soon(poll)
            await server.waiters.wait_for(1)
            server.waiters.settle()
            refused = await called(server, "BeginConversation", options=None)

    assert states == ["Running"]
    assert refused["fault"].startswith("[connector_unavailable] ")


@requirement("ujmw:information")
async def test_the_base_is_an_information_document_for_everybody() -> None:
    async with serving([ROUND]) as server:
        reply = await sent(server, b"GET /ujmw/IConversationalLLM HTTP/1.1\r\nHost: HOST\r\n\r\n")
        preset = await sent(server, b"GET /UJMW/fake:ask/iconversationalllm/ HTTP/1.1\r\nHost: HOST\r\n\r\n")
        on_operation = await sent(
            server, b"GET /ujmw/IConversationalLLM/BeginConversation HTTP/1.1\r\nHost: HOST\r\n\r\n"
        )
        posted = await sent(server, post("", b"{}").replace(b"LLM/ ", b"LLM "))
        document = await sent(server, b"GET /ujmw/IConversationalLLM/openapi.json HTTP/1.1\r\nHost: HOST\r\n\r\n")

    [endpoint] = reply.json["ServiceEndpoints"]
    assert endpoint["EndpointQualifyingName"] == "UJMW:AI.SmartStandards.IConversationalLLM/1.0.0"
    assert endpoint["UJMW.KnownMethods"][:3] == ["GetCapabilities", "BeginConversation", "SubmitUserMessage"]
    assert reply.json["Swagger.DefinitionUrls"] == [f"{server.url}{SERVICE}/openapi.json"]
    assert preset.json["EndpointIndexUrl"] == f"{server.url}/ujmw/fake:ask/IConversationalLLM"
    assert (on_operation.status, on_operation.headers["allow"]) == (405, "POST")
    assert (posted.status, posted.headers["allow"]) == (405, "GET, HEAD")
    assert next(iter(json.loads(document.body)["paths"])) == f"{SERVICE}/GetCapabilities"


@requirement("ujmw:faults")
@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "empty"),
        (b" \r\n", "empty"),
        (b"[1]", "no JSON object"),
        (b'"text"', "no JSON object"),
        (b"null", "no JSON object"),
        (b'{"options": ', "not JSON"),
        (b'{"options": "\xff"}', "not UTF-8"),
        (b"[" * 100_000, "not JSON"),
        (b'{"options": {"effort": "much"}}', "'options.effort'"),
        (b'{"options": 7}', "'options'"),
    ],
)
async def test_a_body_that_cannot_be_used_is_a_fault(body: bytes, told: str) -> None:
    async with serving([ROUND]) as server:
        reply = await sent(server, post("BeginConversation", body))
        fine = await called(server, "ListConversations")

    assert (reply.status, list(reply.json)) == (200, ["fault"])
    assert reply.json["fault"].startswith("[invalid_argument] ")
    assert told in reply.json["fault"]
    assert fine == {"return": []}


@requirement("ujmw:routes")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/UJMW/iconversationalLLM/LISTREQUESTS", 200),
        ("/ujmw/IConversationalLLM/ListRequests/", 200),
        ("/ujmw/Fake/IConversationalLLM/listrequests", 200),
        ("/ujmw/fake:ask/IConversationalLLM/ListRequests", 200),
        ("/ujmw/fake%3Aask/IConversationalLLM/ListRequests", 200),
        ("/ujmw/IConversationalLLM/list_requests", 404),
        ("/ujmw/IConversationalLLM/Nothing", 404),
        ("/ujmw/IConversationalLLM//ListRequests", 404),
        ("/ujmw//IConversationalLLM/ListRequests", 404),
        ("/ujmw/IOther/ListRequests", 404),
        ("/ujmw/a/b/IConversationalLLM/ListRequests", 404),
        ("/ujmw", 404),
        ("/ujmw/", 404),
    ],
)
async def test_paths_know_no_case_and_an_unknown_one_is_404_in_plain_text(path: str, status: int) -> None:
    async with serving([ROUND]) as server:
        line = f"POST {path} HTTP/1.1".encode()
        head = b"\r\nHost: HOST\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 2\r\n\r\n{}"
        reply = await sent(server, line + head)
        put = await sent(server, (line + head).replace(b"POST", b"PUT"))

    assert reply.status == status
    assert put.status == (405 if status == 200 else 404)
    assert len(put.text.splitlines()) == 1
    if status == 404:
        assert len(reply.text.splitlines()) == 1


@requirement("ujmw:routes")
async def test_a_connector_in_the_path_is_that_of_the_conversations_begun_there() -> None:
    asking = "/ujmw/fake:ask/IConversationalLLM"
    async with serving([HANG]) as server:
        preset = await begun(server, asking)
        finer = await begun(server, asking.replace(":ask", ""), connector="fake:ask")
        other = await called(server, "BeginConversation", asking, options={"connector": "claude"})
        unknown = await called(server, "BeginConversation", asking.replace("fake:ask", "nobody"))
        capabilities = await called(server, "GetCapabilities", asking)
        listed = {
            one["conversationId"]: one["connector"] for one in (await called(server, "ListConversations"))["return"]
        }

    assert listed == {preset: "fake:ask", finer: "fake:ask"}
    assert "'claude'" in other["fault"]
    assert unknown["fault"].startswith("[invalid_argument] unknown connector 'nobody'")
    assert capabilities["return"]["inner"]["name"] == "fake"


@requirement("ujmw:settings")
async def test_a_server_can_hide_the_details_of_faults_and_write_numbers() -> None:
    own = ujmw_dialect(UjmwSettings(hide_fault_details=True, enums_as_integers=True, qualified_contract="Own.ILlm"))
    async with serving([HANG], also=[own]) as server:
        fault = await called(server, "CancelTurn", conversationId="c_0", turnId="t", _={})
        turn = await turn_of(server, await begun(server))
        state = (await called(server, "PollTurn", **turn))["return"]
        reply = await sent(server, b"GET /ujmw/IConversationalLLM HTTP/1.1\r\nHost: HOST\r\n\r\n")

    assert fault == {"fault": "[unknown_conversation] the call failed; the server's log has the details"}
    assert (state["status"], state["session"]) == (0, 0)
    assert reply.json["ServiceEndpoints"][0]["EndpointQualifyingName"] == "UJMW:Own.ILlm/1.0.0"


@requirement("ujmw:faults")
async def test_a_mistake_of_ours_is_a_fault_that_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with serve(_Recorder()) as server:
        fault = await called(server, "GetCapabilities")

    assert fault["fault"].startswith("[internal] ")
    assert "sesame" not in fault["fault"]
    assert "sesame" in caplog.text
