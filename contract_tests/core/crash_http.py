"""The same scenario over HTTP: a server and a caller, each a process that may be killed at any moment."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path

import anyio

from connectors.fake import FakeConnector
from contract_tests.core.crash_world import Clock, Diary, Host, Plan, script
from harness.errors import PeerLost
from harness.local import LocalHarness
from harness.registry import Registry
from harness.remote import RemoteHarness
from harness.store import SqliteStore
from harness.surfaces.server import serve

SERVER_IS_GONE = 3


def run_server(directory: str, plan: Plan, ready: Connection) -> None:
    """Serves until it is killed; tells its address when it can be reached."""

    async def main() -> None:
        diary = Diary(Path(directory) / "diary.jsonl")
        diary.note("life")
        clock = Clock(is_late=False)
        clock.turned.set()  # nothing expires here
        connector = FakeConnector(script(plan, clock), on_seen=diary.saw)
        store = SqliteStore(Path(directory) / "journal.db")
        async with (
            LocalHarness(Registry({"fake": connector}), store=store, default_connector="fake") as house,
            serve(house, connectors=["fake"]) as server,
        ):
            ready.send(server.url)
            await anyio.sleep_forever()

    anyio.run(main)


def run_caller(directory: str, plan: Plan, url: str) -> None:
    """The host, until it has all it wanted; ends with 3 when the server goes away."""

    async def main() -> None:
        diary = Diary(Path(directory) / "diary.jsonl")
        try:
            with anyio.fail_after(30):
                async with RemoteHarness(url) as llm:
                    await Host(llm, diary, plan).do_all()
        except PeerLost:
            raise SystemExit(SERVER_IS_GONE) from None
        diary.note("finished")

    anyio.run(main)
