"""What outlives what: an upper harness that restarts, a lower one that forgot, one in the middle that is killed."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from connectors.fake import FakeConnector
from contract_tests.connectors.remote.stack import TOKEN, open_house, remote, through
from contract_tests.llm_suite import TOOLS, Peer, begin, is_over, is_waiting, results, say, texts, to_end, until
from contract_tests.requirements import requirement
from harness.contract import (
    Notice,
    PolicyRule,
    RequestPolicy,
    RequestResolved,
    ToolSourceDescriptor,
    ToolSourceKind,
)
from harness.errors import InvalidArgument
from harness.local import LocalHarness
from harness.remote import RemoteHarness
from harness.store import SqliteStore
from harness.store.memory import MemoryStore
from harness.surfaces.server import serve
from harness.surfaces.tokens import Token

CALL = {"calls": [{"name": "weather", "id": "call_1"}]}
REMEMBERS = [[CALL, {"text": "{{results.call_1}}"}], [{"text": "It was {{results.call_1}}."}]]


def notices(items: Any, code: str) -> list[str]:
    return [item.text for item in items if isinstance(item, Notice) and item.code == code]


@requirement("stacking:resume")
async def test_after_a_restart_of_the_upper_one_the_same_conversation_below_goes_on() -> None:
    journal = MemoryStore()
    with anyio.fail_after(20):
        async with open_house(FakeConnector(REMEMBERS)) as below, serve(below, tokens=[TOKEN]) as server:
            options = remote(through(server.url, "fake"), tools=TOOLS)
            async with open_house(store=MemoryStore(journal)) as top:
                conversation_id = await top.begin_conversation(options)
                await to_end(top, (conversation_id, await say(top, conversation_id)), "xylophone")
            async with open_house(store=MemoryStore(journal)) as top:
                items = await to_end(top, (conversation_id, await say(top, conversation_id, "What was it?")))
                assert texts(items) == "It was xylophone."
                assert notices(items, "history_lost") == []
            [info] = await below.for_owner(TOKEN.owner, TOKEN.rights).list_conversations()
            assert info.turns == 2


@requirement("stacking:resume")
async def test_a_conversation_that_is_forgotten_below_is_told_as_lost() -> None:
    with anyio.fail_after(20):
        async with open_house(FakeConnector()) as below, serve(below, tokens=[TOKEN]) as server, open_house() as top:
            conversation_id = await top.begin_conversation(remote(through(server.url, "fake")))
            await to_end(top, (conversation_id, await say(top, conversation_id, "one")))
            view = below.for_owner(TOKEN.owner, TOKEN.rights)
            [info] = await view.list_conversations()
            await view.delete_conversation(info.conversation_id)
            items = await to_end(top, (conversation_id, await say(top, conversation_id, "two")))
            assert texts(items) == "two"
            assert "no longer has" in notices(items, "history_lost")[0]


@requirement("stacking:resume")
async def test_a_server_below_that_comes_back_with_another_token_is_asked_with_that(tmp_path: Path) -> None:
    file = tmp_path / "token"
    journal = SqliteStore(tmp_path / "below.db"), SqliteStore(tmp_path / "below.db")
    port = free_port()

    def write(secret: str) -> Token:
        file.write_text(secret)
        file.chmod(0o600)
        return Token(secret, TOKEN.owner, TOKEN.rights)

    with anyio.fail_after(20):
        async with open_house() as top:
            chosen = {"url": f"http://127.0.0.1:{port}", "token_file": str(file), "connector": "fake"}
            conversation_id = ""
            for number, store in enumerate(journal):
                token = write(f"made-up-secret-{number}")
                async with (
                    open_house(FakeConnector(), store=store) as below,
                    serve(below, tokens=[token], port=port),
                ):
                    conversation_id = conversation_id or await top.begin_conversation(remote(chosen))
                    items = await to_end(top, (conversation_id, await say(top, conversation_id, f"turn {number}")))
                    assert texts(items) == f"turn {number}"
                    assert notices(items, "history_lost") == []


@requirement("stacking:resume")
async def test_a_turn_that_a_dead_process_left_below_is_ended_before_the_next() -> None:
    peer = Peer()
    script = [[{"text": "one"}, {"hang": True}], [{"text": "two"}]]
    with anyio.fail_after(20):
        async with (
            open_house(FakeConnector(script, on_seen=peer.note)) as below,
            serve(below, tokens=[TOKEN]) as server,
            open_house() as top,
        ):
            view = below.for_owner(TOKEN.owner, TOKEN.rights)
            conversation_id = await top.begin_conversation(remote(through(server.url, "fake"), prestart=True))
            await peer.has_seen("opened")
            [info] = await view.list_conversations()
            left = info.conversation_id, await say(view, info.conversation_id, "before it died")
            await until(view, left, lambda state: state.sequence_no > 0)
            assert texts(await to_end(top, (conversation_id, await say(top, conversation_id)))) == "two"
            assert (await view.poll_turn(*left)).status == "cancelled"


@requirement("stacking:delegation")
async def test_what_is_delegated_is_handed_to_the_one_below() -> None:
    source = ToolSourceDescriptor(name="clocks", kind=ToolSourceKind.MCP_STDIO, command="true")
    delegated = {"name": "what_time", "id": "call_1", "source": "clocks", "result": "noon"}
    script = [[{"calls": [delegated]}, {"approval": {"tool": "run"}}, {"text": "{{results.call_1}}"}]]
    with anyio.fail_after(20):
        async with (
            open_house(FakeConnector(script)) as below,
            serve(below, tokens=[TOKEN]) as server,
            open_house() as top,
        ):
            conversation_id = await top.begin_conversation(remote(through(server.url, "fake")))
            await top.delegate_tool_sources(conversation_id, [source])
            await top.delegate_request_policy(conversation_id, RequestPolicy(allow=[PolicyRule(tool="run")]))
            ids = conversation_id, await say(top, conversation_id)
            state, items = await until(top, ids, is_over)
            assert (state.status, texts(items)) == ("completed", "noon")


# --- the one in the middle is killed ---------------------------------------------------------------------------------

MIDDLE = """
import anyio, sys
from pathlib import Path
from connectors.remote import RemoteConnector
from contract_tests.connectors.remote.stack import TOKEN
from harness.local import LocalHarness
from harness.registry import Registry
from harness.store import SqliteStore
from harness.surfaces.server import serve

async def main(directory, port):
    store = SqliteStore(Path(directory) / "middle.db")
    async with (
        LocalHarness(Registry({"remote": RemoteConnector()}), store=store) as house,
        serve(house, tokens=[TOKEN], port=int(port)) as server,
    ):
        print(server.url, flush=True)
        await anyio.sleep_forever()

anyio.run(main, *sys.argv[1:])
"""


@asynccontextmanager
async def open_middle(directory: Path, port: int) -> AsyncGenerator[tuple[str, subprocess.Popen[str]]]:
    arguments = [sys.executable, "-c", MIDDLE, str(directory), str(port)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield (await anyio.to_thread.run_sync(process.stdout.readline)).strip(), process
        finally:
            process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def lead_on(top: LocalHarness, middle: str, bottom: str, tmp_path: Path) -> tuple[str, str]:
    """A turn at the top whose call is open."""
    file = tmp_path / "token"
    file.write_text(TOKEN.secret)
    file.chmod(0o600)
    below = {"url": bottom, "token_file": str(file), "connector": "fake"}
    options = remote(through(middle, "remote", below))
    ids = await begin(top, connector="remote", connector_options_json=options.connector_options_json)
    await until(top, ids, is_waiting)
    return ids


@requirement("stacking:killed")
async def test_kill_9_in_the_middle_fails_the_top_at_once_and_a_restart_frees_the_bottom(tmp_path: Path) -> None:
    peer, port = Peer(), free_port()
    bottom = FakeConnector([[CALL, {"text": "never"}], [{"text": "again"}]], on_seen=peer.note)
    with anyio.fail_after(60):
        async with open_house(bottom) as below, serve(below, tokens=[TOKEN]) as server, open_house() as top:
            async with open_middle(tmp_path, port) as (url, process):
                ids = await lead_on(top, url, server.url, tmp_path)
                process.send_signal(signal.SIGKILL)
                with anyio.fail_after(10):
                    state, items = await until(top, ids, is_over)
                assert state.status == "failed" and state.error is not None
                assert (state.error.code, state.error.retryable) == ("peer_lost", True)
                assert f"the server at '{url}' is gone" in state.error.message
                assert [item.outcome for item in items if isinstance(item, RequestResolved)] == ["lost"]
                [lost] = json.loads(state.error.detail_json or "{}")["open_requests"]
                assert (lost["call_id"], lost["outcome"]) == ("call_1", "unknown")
            assert [one.what for one in peer.seen] == ["opened", "message"]

            async with open_middle(tmp_path, port):
                await peer.has_seen("interrupt")
                await peer.has_seen("closed")
                again = ids[0], await say(top, ids[0], "again")
                state, items = await until(top, again, is_over)
                assert (state.status, texts(items)) == ("completed", "again")
                assert notices(items, "history_lost") == []


@requirement("stacking:killed")
async def test_an_answer_that_the_dead_middle_did_not_get_is_in_the_detail(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with (
            open_house(FakeConnector([[CALL, {"text": "never"}]])) as below,
            serve(below, tokens=[TOKEN]) as server,
            open_house() as top,
            open_middle(tmp_path, free_port()) as (url, process),
        ):
            ids = await lead_on(top, url, server.url, tmp_path)
            process.send_signal(signal.SIGSTOP)  # it takes nothing any more, and is not gone yet
            state = await top.poll_turn(*ids)
            await top.submit_responses(*ids, results([state.pending_requests[0].request_id], "3 °C"))
            process.send_signal(signal.SIGKILL)
            with anyio.fail_after(10):
                state, _ = await until(top, ids, is_over)
            assert state.error is not None and state.error.code == "peer_lost"
            [lost] = json.loads(state.error.detail_json or "{}")["open_requests"]
            assert lost["response"]["content"] == [{"type": "text", "text": "3 °C"}]


@requirement("stacking:errors")
async def test_an_answer_that_cannot_be_passed_down_fails_the_turn_and_leaves_nothing_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(self: RemoteHarness, *_: object) -> None:
        raise InvalidArgument("no such answer here")

    monkeypatch.setattr(RemoteHarness, "submit_responses", refuse)
    peer = Peer()
    with anyio.fail_after(20):
        async with (
            open_house(FakeConnector([[CALL, {"text": "never"}]], on_seen=peer.note)) as below,
            serve(below, tokens=[TOKEN]) as server,
            open_house() as top,
        ):
            conversation_id = await top.begin_conversation(remote(through(server.url, "fake"), tools=TOOLS))
            ids = conversation_id, await say(top, conversation_id)
            await until(top, ids, is_waiting)
            await top.submit_responses(*ids, results(["call_1"]))
            state, _ = await until(top, ids, is_over)
            assert state.error is not None
            assert (state.error.code, state.error.message) == ("invalid_argument", "no such answer here")
            await peer.has_seen("interrupt")


@requirement("stacking:errors")
async def test_a_turn_that_is_cancelled_below_by_somebody_else_is_lost_here() -> None:
    with anyio.fail_after(20):
        async with (
            open_house(FakeConnector([[CALL, {"text": "never"}]])) as below,
            serve(below, tokens=[TOKEN]) as server,
            open_house() as top,
        ):
            conversation_id = await top.begin_conversation(remote(through(server.url, "fake"), tools=TOOLS))
            ids = conversation_id, await say(top, conversation_id)
            await until(top, ids, is_waiting)
            view = below.for_owner(TOKEN.owner, TOKEN.rights)
            [waiting] = await view.list_requests()
            await view.cancel_turn(waiting.conversation_id, waiting.turn_id)
            state, _ = await until(top, ids, is_over)
            assert state.status == "failed" and state.error is not None
            assert (state.error.code, state.error.message[:22]) == ("peer_lost", "the turn was cancelled")
