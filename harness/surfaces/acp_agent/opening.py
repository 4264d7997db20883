"""How a session is opened: its conversation's options, its MCP servers, and what is kept for those who list it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from harness.contract.capabilities import LlmCapabilities
from harness.contract.conversational_llm import ConversationalLLM, ConversationDirectory
from harness.contract.delegation import RequestPolicy
from harness.contract.options import ConversationOptions, Timeouts
from harness.contract.state import ConversationInfo
from harness.contract.value import Label
from harness.errors import InvalidArgument
from harness.orchestrator.mcp_config import McpServer
from harness.orchestrator.routing import Route
from harness.orchestrator.sources import decide_routes, place_of
from harness.surfaces.acp_agent.incoming import servers_of
from harness.surfaces.acp_agent.modes import Choices
from harness.surfaces.acp_agent.names import CWD_LABEL, SERVERS_LABEL
from harness.surfaces.acp_agent.params import NewSession


class OwnLLM(ConversationalLLM, ConversationDirectory, Protocol):
    """Both halves of a harness."""


def _no_labels(directory: Path) -> Sequence[Label]:
    return ()


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What the person who set up the agent wants of every session."""

    connector: str
    policy: RequestPolicy = field(default_factory=RequestPolicy)
    models: tuple[str, ...] = ()
    """The first one is used; with more of them the client may choose."""
    system_prompt: str | None = None
    internal_tools: tuple[str, ...] | None = None
    """Null: all that the connector has, since in a client the agent itself is to work."""
    connector_options_json: str | None = None
    labels_of: Callable[[Path], Sequence[Label]] = _no_labels

    def options(self, cwd: str | None = None) -> ConversationOptions:
        """Without the internal tools, which only the capabilities name. A person answers in their own time."""
        return ConversationOptions(
            connector=self.connector,
            model=self.models[0] if self.models else None,
            system_prompt=self.system_prompt,
            timeouts=Timeouts(approval_ms=None),
            cwd=cwd,
            connector_options_json=self.connector_options_json,
        )

    def choices(self, capabilities: LlmCapabilities) -> Choices:
        return Choices.of(self.policy, self.models, capabilities)


@dataclass(frozen=True, slots=True)
class Opening:
    """One session to open; `conversation_id` is that of an earlier one."""

    options: ConversationOptions
    capabilities: LlmCapabilities
    servers: Sequence[McpServer] = ()
    conversation_id: str | None = None


async def new_opening(llm: ConversationalLLM, settings: AgentSettings, params: NewSession) -> Opening:
    """Raises:
    HarnessError: a directory or a server that cannot be used, or a connector that is not there.
    """
    servers = servers_of(params.mcp_servers)
    options = settings.options(_directory(params))
    capabilities = await llm.get_capabilities(options)
    routes = {one.source: str(one.route) for one in decide_routes(servers, capabilities, place_of(llm))}
    own = settings.internal_tools
    options = options.model_copy(
        update={
            "internal_tools": list(capabilities.internal_tools if own is None else own),
            "labels": [
                *settings.labels_of(Path(params.cwd)),
                Label(name=CWD_LABEL, value=params.cwd),
                Label(name=SERVERS_LABEL, value=json.dumps(routes)),
            ],
        }
    )
    return Opening(options, capabilities, servers)


async def earlier_opening(llm: OwnLLM, settings: AgentSettings, params: NewSession, conversation_id: str) -> Opening:
    """A conversation keeps the directory and the tools that it was begun with.

    Raises:
        UnknownConversation: there is none.
        InvalidArgument: another connector's, or a server that it was begun without.
    """
    info = await llm.get_conversation(conversation_id)
    if info.connector != settings.connector:
        raise InvalidArgument(
            f"session '{conversation_id}' was begun with the connector '{info.connector}', and this agent is "
            f"'{settings.connector}': load it with 'harness acp --connector {info.connector}'"
        )
    begun = _routes(info)
    servers = servers_of(params.mcp_servers)
    added = [server.name for server in servers if server.name not in begun]
    if added:
        raise InvalidArgument(
            f"session '{conversation_id}' was begun without the MCP server '{added[0]}' and keeps its tools: leave the "
            "server out, or begin a new session"
        )
    options = settings.options(label_of(info, CWD_LABEL) or _directory(params))
    options = options.model_copy(update={"model": info.model})
    routed = [server for server in servers if begun[server.name] == Route.ROUTED]
    return Opening(options, await llm.get_capabilities(options), routed, conversation_id)


def label_of(info: ConversationInfo, name: str) -> str | None:
    return next((label.value for label in info.labels if label.name == name), None)


def _directory(params: NewSession) -> str:
    if params.additional_directories:
        raise InvalidArgument("'additionalDirectories' is not supported: a session has one directory")
    if not Path(params.cwd).is_absolute():
        raise InvalidArgument(f"'cwd' must be an absolute path, not '{params.cwd}'")
    if not Path(params.cwd).is_dir():
        raise InvalidArgument(f"'cwd' '{params.cwd}' is no directory")
    return params.cwd


def _routes(info: ConversationInfo) -> Mapping[str, str]:
    """Name -> who runs it; empty for a conversation that was not begun here."""
    told = label_of(info, SERVERS_LABEL)
    return {} if told is None else cast(Mapping[str, str], json.loads(told))
