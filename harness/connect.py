"""`connect("claude")` or `connect("http://host:port")`: the same object whether the harness is here or elsewhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any

from harness.contract.conversational_llm import ConversationalLLM
from harness.contract.delegation import RequestPolicy
from harness.contract.options import ConversationOptions
from harness.local import LocalHarness
from harness.orchestrator.approvals import Answers, ApprovalMode, Approver
from harness.orchestrator.conversation import ConversationHandle
from harness.orchestrator.mcp_config import McpServer
from harness.orchestrator.opening import open_conversation
from harness.policy import Policy
from harness.registry import Registry
from harness.remote import RemoteHarness
from harness.settings import Settings
from harness.store.port import Store


class Connection:
    """A harness that is opened when it is entered, or by `conversation` for one conversation.

    async with connect("claude") as llm:
        await run_to_completion(llm, "...")
    async with connect("claude").conversation(tools=[...]) as c:
        await c.ask("...")
    """

    def __init__(
        self, open_llm: Callable[[], AbstractAsyncContextManager[ConversationalLLM]], connector: str | None
    ) -> None:
        self._open_llm = open_llm
        self._connector = connector
        self._entered: AbstractAsyncContextManager[ConversationalLLM] | None = None

    async def __aenter__(self) -> ConversationalLLM:
        self._entered = self._open_llm()
        return await self._entered.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        if self._entered is None:
            return None
        entered, self._entered = self._entered, None
        return await entered.__aexit__(kind, error, traceback)

    @asynccontextmanager
    async def conversation(
        self,
        *,
        tools: Iterable[Any] = (),
        options: ConversationOptions | None = None,
        approver: Approver | ApprovalMode | str = ApprovalMode.DENY,
        answers: Answers | None = None,
        policy: Policy | RequestPolicy | None = None,
        servers: Sequence[McpServer] = (),
    ) -> AsyncGenerator[ConversationHandle]:
        """One conversation with these tools and MCP servers; everything is closed when it is left.

        `policy` decides what it can, then `approver` decides approvals and questions (denied by default); `answers` are
        for questions known beforehand.
        """
        wanted = options or ConversationOptions()
        if wanted.connector is None and self._connector is not None:
            wanted = wanted.model_copy(update={"connector": self._connector})
        async with (
            self as llm,
            open_conversation(
                llm,
                tools=tools,
                options=wanted,
                approver=approver,
                answers=answers,
                policy=policy,
                servers=servers,
            ) as handle,
        ):
            yield handle


def connect(
    target: str,
    *,
    token: str | None = None,
    registry: Registry | None = None,
    settings: Settings | None = None,
    store: Store | None = None,
) -> Connection:
    """A connector by name (`fake`, `claude`, `claude:bridge`) in this process, or a running server by its URL.

    `token` is the bearer token of a server; that of a server on this machine is found by itself. With a `store`
    (`harness.store.SqliteStore`) conversations in this process outlive it; a server has its own.
    """
    if target.startswith(("http://", "https://")):
        return Connection(lambda: RemoteHarness(target, token=token), None)
    return Connection(lambda: LocalHarness(registry, settings=settings, default_connector=target, store=store), target)
