"""A fork begins with what the connector remembers of the other conversation, in memory and in a journal."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from connectors.fake import FakeConnector
from contract_tests.requirements import requirement
from harness.connector import SessionLog
from harness.contract import TERMINAL, ConversationOptions, LlmCapabilities, PolicyMode, RequestPolicy, TextBlock
from harness.contract.delegation import Delegation
from harness.contract.value import JsonValue
from harness.errors import NotSupported, UnknownConversation
from harness.local import LocalHarness
from harness.registry import Registry
from harness.settings import Rights
from harness.store import SqliteStore

OPTIONS = ConversationOptions(connector="fake", connector_options_json='{"steps":[{"text":"hi"}]}', client_key="k")


class Forking(FakeConnector):
    """Remembers where it came from; notes what each session found in its memory."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Sequence[JsonValue], Delegation]] = []

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        return (await super().get_capabilities(options)).model_copy(update={"fork": True})

    def open_session(self, options: ConversationOptions, delegation: Delegation, log: SessionLog) -> Any:
        self.found.append((log.records(), delegation))
        log.append("a session")
        return super().open_session(options, delegation, log)

    def forked(self, records: Sequence[JsonValue]) -> Sequence[JsonValue]:
        return [f"fork of {len(records)}"]


async def say(harness: LocalHarness, conversation_id: str) -> None:
    turn_id = await harness.submit_user_message(conversation_id, [TextBlock(text="Hello")])
    while (await harness.poll_turn(conversation_id, turn_id, 10**6, 5000)).status not in TERMINAL:
        pass


@requirement("conversation:fork")
@pytest.mark.parametrize("keeps", [False, True])
async def test_a_fork_knows_what_the_connector_wants_and_goes_its_own_way(tmp_path: Path, keeps: bool) -> None:
    connector = Forking()
    registry = Registry({"fake": connector})
    store = SqliteStore(tmp_path / "journal.db") if keeps else None
    with anyio.fail_after(5):
        async with LocalHarness(registry, store=store) as harness:
            origin = await harness.begin_conversation(OPTIONS)
            await harness.delegate_request_policy(origin, RequestPolicy(mode=PolicyMode.READ_ONLY))
            await say(harness, origin)
            fork = await harness.fork_conversation(origin)
            assert fork != origin and await harness.begin_conversation(OPTIONS) == origin
            if not keeps:
                await say(harness, fork)
        if keeps:
            async with LocalHarness(registry, store=SqliteStore(tmp_path / "journal.db")) as harness:
                await say(harness, fork)
    records, delegation = connector.found[-1]
    assert list(records) == ["fork of 1"]
    assert delegation.request_policy is not None and delegation.request_policy.mode == PolicyMode.READ_ONLY


@requirement("conversation:fork")
async def test_only_the_owner_forks_and_only_where_the_connector_can() -> None:
    with anyio.fail_after(5):
        async with LocalHarness(Registry({"fake": FakeConnector()})) as harness:
            begun = await harness.begin_conversation(OPTIONS)
            with pytest.raises(NotSupported, match="'fake' cannot fork"):
                await harness.fork_conversation(begun)
            with pytest.raises(UnknownConversation):
                await harness.for_owner("other", Rights()).fork_conversation(begun)
