"""The agent: its methods, its sessions, and which request goes where."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TypeAlias

import anyio
from anyio.abc import TaskGroup

from harness.contract.capabilities import LlmCapabilities
from harness.contract.state import ConversationInfo
from harness.errors import HarnessError, InvalidArgument, UnknownConversation, unwrapped
from harness.surfaces.acp_agent.client import Client
from harness.surfaces.acp_agent.incoming import content_of
from harness.surfaces.acp_agent.modes import MODE
from harness.surfaces.acp_agent.names import AGENT, CWD_LABEL
from harness.surfaces.acp_agent.opening import (
    AgentSettings,
    Opening,
    OwnLLM,
    earlier_opening,
    label_of,
    new_opening,
)
from harness.surfaces.acp_agent.outcome import fault_of, internal_fault
from harness.surfaces.acp_agent.params import (
    ClientCapabilities,
    EarlierSession,
    Initialize,
    ListSessions,
    NewSession,
    OfSession,
    Prompt,
    SetConfigOption,
    SetMode,
    read_params,
)
from harness.surfaces.acp_agent.session import AgentSession
from harness.wire.json_rpc import (
    METHOD_NOT_FOUND,
    JsonObject,
    RpcAnswer,
    RpcFault,
    RpcMalformed,
    RpcMessage,
    RpcNotification,
    RpcRequest,
)

logger = logging.getLogger(__name__)

PROTOCOL_VERSION = 1
_TITLE_CHARS = 80

Method: TypeAlias = Callable[[JsonObject], Awaitable[JsonObject]]


class AcpAgent:
    """Answers one client. Requests run side by side; a prompt holds its session from the moment it is read."""

    def __init__(self, llm: OwnLLM, settings: AgentSettings, client: Client, tasks: TaskGroup) -> None:
        self._llm = llm
        self._settings = settings
        self._client = client
        self._tasks = tasks
        self._can = ClientCapabilities()
        self._sessions: dict[str, AgentSession] = {}
        self._opening = anyio.Lock()
        self._methods: dict[str, Method] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_config_option,
        }

    async def receive(self, message: RpcMessage) -> None:
        """Takes up one message, in the order they came; what takes time goes on by itself."""
        match message:
            case RpcAnswer():
                self._client.answered(message)
            case RpcMalformed():
                logger.warning("the client sent a line that is no message: %s", message.fault.message)
                await self._client.refuse(message.id, message.fault)
            case RpcNotification():
                self._notified(message)
            case RpcRequest(method="session/prompt"):
                await self._prompted(message)
            case RpcRequest():
                self._tasks.start_soon(self._answer, message)

    def _notified(self, message: RpcNotification) -> None:
        if message.method != "session/cancel":
            logger.info("the client's notification '%s' is not known here", message.method)
            return
        session = self._sessions.get(str(message.params.get("sessionId")))
        if session is not None:
            session.cancel()

    async def _prompted(self, request: RpcRequest) -> None:
        """A cancel that follows on the heels of a prompt finds it running."""
        try:
            params = read_params(Prompt, request.params)
            session = self._session(params.session_id)
            content = content_of(params.prompt, session.capabilities)
            stop = session.begin_prompt()
        except HarnessError as error:
            await self._client.refuse(request.id, fault_of(error))
            return

        async def run(_: JsonObject) -> JsonObject:
            try:
                return await session.prompt(content, stop)
            finally:
                session.end_prompt()

        self._tasks.start_soon(self._settle, request, run)

    async def _answer(self, request: RpcRequest) -> None:
        method = self._methods.get(request.method)
        if method is None:
            fault = RpcFault(METHOD_NOT_FOUND, f"there is no method '{request.method}'")
            await self._client.refuse(request.id, fault)
            return
        await self._settle(request, method)

    async def _settle(self, request: RpcRequest, method: Method) -> None:
        try:
            with unwrapped():
                result = await method(request.params)
        except HarnessError as error:
            await self._client.refuse(request.id, fault_of(error))
        except Exception:
            # the edge: the client gets an answer whatever happens, and the other sessions go on
            logger.exception("'%s' failed", request.method)
            await self._client.refuse(request.id, internal_fault())
        else:
            await self._client.answer(request.id, result)

    # the connection

    async def _initialize(self, params: JsonObject) -> JsonObject:
        told = read_params(Initialize, params)
        self._can = told.client_capabilities or ClientCapabilities()
        capabilities = await self._llm.get_capabilities(self._settings.options())
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": _told(capabilities),
            "authMethods": [],
            "agentInfo": {"name": AGENT, "title": f"{AGENT}: {self._settings.connector}", "version": _own_version()},
        }

    async def _authenticate(self, params: JsonObject) -> JsonObject:
        raise InvalidArgument(
            f"there is nothing to authenticate with: log in to '{self._settings.connector}' with its own command"
        )

    # sessions

    async def _new(self, params: JsonObject) -> JsonObject:
        session = await self._open(await new_opening(self._llm, self._settings, read_params(NewSession, params)))
        return {"sessionId": session.session_id, **session.choices.told()}

    async def _load(self, params: JsonObject) -> JsonObject:
        session = await self._open_again(read_params(EarlierSession, params), replays=True)
        return session.choices.told()

    async def _resume(self, params: JsonObject) -> JsonObject:
        session = await self._open_again(read_params(EarlierSession, params))
        return session.choices.told()

    async def _fork(self, params: JsonObject) -> JsonObject:
        told = read_params(EarlierSession, params)
        fork = await self._llm.fork_conversation(told.session_id)
        session = await self._open(await earlier_opening(self._llm, self._settings, told, fork))
        return {"sessionId": session.session_id, **session.choices.told()}

    async def _list(self, params: JsonObject) -> JsonObject:
        wanted = read_params(ListSessions, params).cwd
        listed: list[JsonObject] = []
        for info in await self._llm.list_conversations():
            cwd = label_of(info, CWD_LABEL)
            if info.connector == self._settings.connector and info.turns and cwd and wanted in (None, cwd):
                listed.append(_listed(info, cwd))
        return {"sessions": listed}

    async def _close(self, params: JsonObject) -> JsonObject:
        session = self._session(read_params(OfSession, params).session_id)
        await self._shut(session)
        return {}

    async def _delete(self, params: JsonObject) -> JsonObject:
        session_id = read_params(OfSession, params).session_id
        if session_id in self._sessions:
            await self._shut(self._sessions[session_id])
        await self._llm.delete_conversation(session_id)
        return {}

    async def _set_mode(self, params: JsonObject) -> JsonObject:
        told = read_params(SetMode, params)
        session = self._session(told.session_id)
        await session.choose(MODE, told.mode_id)
        await self._client.update(
            session.session_id,
            {"sessionUpdate": "config_option_update", "configOptions": session.choices.options()},
        )
        return {}

    async def _set_config_option(self, params: JsonObject) -> JsonObject:
        told = read_params(SetConfigOption, params)
        session = self._session(told.session_id)
        await session.choose(told.config_id, told.value)
        if told.config_id == MODE:
            update: JsonObject = {"sessionUpdate": "current_mode_update", "currentModeId": told.value}
            await self._client.update(session.session_id, update)
        return {"configOptions": session.choices.options()}

    # inside

    async def _open(self, opening: Opening) -> AgentSession:
        choices = self._settings.choices(opening.capabilities)
        session = AgentSession(self._llm, self._client, opening, choices, has_forms=self._can.has_forms)
        await self._tasks.start(session.hold)
        self._sessions[session.session_id] = session
        return session

    async def _open_again(self, params: EarlierSession, *, replays: bool = False) -> AgentSession:
        async with self._opening:
            opening = await earlier_opening(self._llm, self._settings, params, params.session_id)
            if params.session_id in self._sessions:
                await self._shut(self._sessions[params.session_id])
            session = await self._open(opening)
        try:
            await session.settle((await self._llm.export_conversation(session.session_id)).turns)
            if replays:
                await session.replay((await self._llm.export_conversation(session.session_id)).turns)
        except HarnessError:
            await self._shut(session)
            raise
        return session

    async def _shut(self, session: AgentSession) -> None:
        self._sessions.pop(session.session_id, None)
        await session.close()

    def _session(self, session_id: str) -> AgentSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise UnknownConversation(f"no session '{session_id}' is open: begin one, or load it")
        return session


def _told(capabilities: LlmCapabilities) -> JsonObject:
    sessions: JsonObject = {"list": {}, "resume": {}, "close": {}, "delete": {}}
    if capabilities.fork:
        sessions["fork"] = {}
    return {
        "loadSession": True,
        "promptCapabilities": {"image": capabilities.images_in_prompt, "audio": False, "embeddedContext": True},
        "mcpCapabilities": {"http": True, "sse": False},
        "sessionCapabilities": sessions,
    }


def _listed(info: ConversationInfo, cwd: str) -> JsonObject:
    told: JsonObject = {
        "sessionId": info.conversation_id,
        "cwd": cwd,
        "updatedAt": datetime.fromtimestamp(info.updated_at / 1000, UTC).isoformat(timespec="seconds"),
    }
    if info.first_message:
        told["title"] = " ".join(info.first_message.split())[:_TITLE_CHARS]
    return told


def _own_version() -> str:
    try:
        return version("level2-harness")
    except PackageNotFoundError:
        return "0"
