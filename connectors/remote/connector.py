"""The connector `remote`: opens conversations of another harness. The client is `RemoteHarness`, as for anybody."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import uuid4

import anyio

from connectors.remote.config import RESTRICTED, RemoteConfig, config_of
from connectors.remote.protocol import capabilities_here, options_onward
from connectors.remote.session import CLOSE_SECONDS, RemoteSession
from harness.connector import Session, SessionLog
from harness.contract.capabilities import LlmCapabilities
from harness.contract.delegation import Delegation
from harness.contract.options import ConversationOptions
from harness.contract.value import JsonValue
from harness.errors import HarnessError, UnknownConversation
from harness.remote import RemoteHarness
from harness.turn.events import notice

logger = logging.getLogger(__name__)


class RemoteConnector:
    """One conversation of the other harness for each of ours.

    What is in a session's log: `{"begin"}` with the key a conversation is begun by, then `{"conversation"}` with its
    id, and where to end it when this process dies. Never a token.
    """

    name = "remote"
    variants: Mapping[str, Mapping[str, JsonValue]] = {}
    restricted_options = RESTRICTED

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        config = config_of(options)
        async with _open(config) as llm:
            return capabilities_here(await llm.get_capabilities(options_onward(options, config, None)))

    @asynccontextmanager
    async def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[Session]:
        config = config_of(options)
        async with _open(config) as llm:
            conversation_id = await _attached(llm, options, config, delegation, log)
            there = f"'{config.connector}'" if config.connector else "the default connector"
            told = f"the harness at {config.server_url()}, {there}, conversation '{conversation_id}'"
            try:
                async with anyio.create_task_group() as tasks:
                    yield RemoteSession(llm, conversation_id, tasks, notice("peer_started", told))
                    tasks.cancel_scope.cancel()
            finally:
                await _end(llm, conversation_id)

    async def reap(self, records: Sequence[JsonValue]) -> None:
        """Ends the conversations that a process which died had open there, as far as their token can be found."""
        begun = [one for one in cast(Sequence[Mapping[str, Any]], records) if "conversation" in one]
        async with anyio.create_task_group() as tasks:
            for record in begun:
                tasks.start_soon(_reap, record)

    def dry_run(self, options: ConversationOptions) -> Mapping[str, JsonValue]:
        config = config_of(options)
        onward = {"url": config.server_url(), "connector": config.connector, "model": options.model or config.model}
        return {"argv": [], "environment": [], **onward}


def _open(config: RemoteConfig) -> RemoteHarness:
    return RemoteHarness(config.server_url(), config.secret())


async def _attached(
    llm: RemoteHarness, options: ConversationOptions, config: RemoteConfig, delegation: Delegation, log: SessionLog
) -> str:
    """The conversation that goes with this one: the one of an earlier session, else a new one."""
    records = cast(Sequence[Mapping[str, Any]], log.records())
    known = next((one["conversation"] for one in reversed(records) if "conversation" in one), None)
    if known is not None:
        try:
            return (await llm.get_conversation(known)).conversation_id
        except UnknownConversation:
            told = f"the harness at {config.server_url()} no longer has '{known}': it knows nothing of the turns before"
            log.notice(notice("history_lost", told))
    key = next((one["begin"] for one in records[-1:] if "begin" in one), None)
    if key is None:  # else we died before we heard of its id: the same key gives the same conversation
        key = f"begin_{uuid4().hex}"
        log.append({"begin": key})
    conversation_id = await llm.begin_conversation(options_onward(options, config, key))
    if delegation.tool_sources:
        await llm.delegate_tool_sources(conversation_id, delegation.tool_sources)
    if delegation.request_policy is not None:
        await llm.delegate_request_policy(conversation_id, delegation.request_policy)
    log.append({"conversation": conversation_id, "url": config.server_url(), "token_file": config.token_file})
    return conversation_id


async def _end(llm: RemoteHarness, conversation_id: str) -> None:
    """Frees the peer over there; the next message goes on with it."""
    with anyio.move_on_after(CLOSE_SECONDS, shield=True):
        try:
            await llm.end_conversation(conversation_id)
        except HarnessError as error:
            logger.info("conversation '%s' of the other harness was not ended: %s", conversation_id, error.message)


async def _reap(record: Mapping[str, Any]) -> None:
    config = RemoteConfig(url=record["url"], token_file=record["token_file"])
    try:
        async with _open(config) as llm:
            await _end(llm, record["conversation"])
    except HarnessError as error:
        logger.info("'%s' of the other harness was not ended: %s", record["conversation"], error.message)
