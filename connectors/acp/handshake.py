"""From a started agent to a session that can take a message: what is asked of it, one after the other. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from connectors._json import JsonObject, number_in, object_in, objects_in, plain_text_in
from connectors._jsonrpc import Answered, JsonRpc
from connectors._kept_policy import KeptPolicy
from connectors.acp.agent import Agent
from connectors.acp.client_calls import NO_RIGHTS, ClientRights
from connectors.acp.outcome import error_of
from harness.errors import ConnectorUnavailable, NotSupported, PeerProtocolError

PROTOCOL_VERSION = 1
CLIENT = {"name": "level2-harness", "title": "level2-harness", "version": "1"}
_TITLE = "level2-harness"
_OPENING = frozenset({"session/new", "session/resume", "session/load"})


@dataclass(frozen=True, slots=True)
class Opening:
    """What a session is opened with; `session_id` is that of an earlier one to take up."""

    params: JsonObject
    session_id: str | None = None
    model: str | None = None
    mode: str | None = None
    auth_method: str | None = None
    capabilities: JsonObject | None = None
    """Of ours, beside those that every agent is told."""
    rights: ClientRights = NO_RIGHTS
    policy: KeptPolicy | None = None


class Handshake:
    """`answered` is fed with every answer until the session is there, or `resume_failed` says that there is none."""

    def __init__(self, agent: Agent, opening: Opening, rpc: JsonRpc) -> None:
        self.is_initialized = False
        self.version = ""
        self.takes_http = False
        """Whether the agent connects to MCP servers over HTTP."""
        self.prompt_kinds: JsonObject = {}
        self.session_id: str | None = None
        """Set once the session can take a prompt."""
        self.resume_failed = False
        """The session to take up is not there."""
        self._agent = agent
        self._opening = opening
        self._rpc = rpc
        self._opened_id = ""
        self._left_to_ask: list[tuple[str, JsonObject]] = []

    @property
    def takes_up(self) -> str | None:
        """The method that takes up the earlier session; null where a new one is opened."""
        return self._agent.resume if self._opening.session_id is not None else None

    def initialize(self) -> None:
        opening = self._opening
        told = {**opening.rights.capabilities, **(opening.capabilities or {})}
        capabilities: JsonObject = {"elicitation": {"form": {}}, **told}
        params: JsonObject = {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": capabilities}
        self._rpc.ask("initialize", {**params, "clientInfo": CLIENT})

    def open_session(self, servers: list[JsonObject]) -> None:
        """After `initialize`: takes up the earlier session, or opens a new one, with these MCP servers."""
        params: JsonObject = {**self._opening.params, "mcpServers": servers}
        if self.takes_up is not None:
            params["sessionId"] = self._opening.session_id
        self._left_to_ask = [(self.takes_up or "session/new", params)]
        if self._opening.auth_method is not None:
            self._rpc.ask("authenticate", {"methodId": self._opening.auth_method})
        else:
            self._ask_next()

    def answered(self, answer: Answered) -> None:
        """
        Raises:
            HarnessError: the agent cannot be used as asked, or broke its protocol.
        """
        if answer.purpose == "initialize":
            self._initialized(answer)
            return
        if answer.error is not None:
            self._refused(answer)
        else:
            self._agreed(answer)
        if not self.resume_failed:
            self._ask_next()

    # inside

    def _agreed(self, answer: Answered) -> None:
        if answer.purpose in _OPENING:
            self._opened_id = plain_text_in(answer.result.get("sessionId")) or (self._opening.session_id or "")
            if not self._opened_id:
                raise PeerProtocolError(f"'{self._agent.name}' opened a session without an id")
            self._left_to_ask = self._settings(answer.result)

    def _ask_next(self) -> None:
        if self._left_to_ask:
            method, params = self._left_to_ask.pop(0)
            self._rpc.ask(method, params)
        else:
            self.session_id = self._opened_id

    def _initialized(self, answer: Answered) -> None:
        if answer.error is not None:
            raise error_of(answer.error, self._agent)
        told = number_in(answer.result.get("protocolVersion"))
        if told != PROTOCOL_VERSION:
            raise ConnectorUnavailable(
                f"'{self._agent.name}' speaks version {told} of ACP, not {PROTOCOL_VERSION}; {self._agent.remedy}",
                reason="wrong_version",
            )
        self.version = plain_text_in(object_in(answer.result.get("agentInfo")).get("version"))
        capabilities = object_in(answer.result.get("agentCapabilities"))
        self.takes_http = object_in(capabilities.get("mcpCapabilities")).get("http") is True
        self.prompt_kinds = object_in(capabilities.get("promptCapabilities"))
        self.is_initialized = True

    def _refused(self, answer: Answered) -> None:
        """The session did not come about."""
        assert answer.error is not None
        if answer.purpose in _OPENING and self._opening.session_id is not None:
            self.resume_failed = True
            return
        if answer.purpose == self._agent.title_method:
            return
        error = error_of(answer.error, self._agent)
        if answer.purpose in ("session/set_config_option", "session/set_model"):
            raise NotSupported(f"'{self._agent.name}' has no model '{self._opening.model}': {answer.error.message}")
        raise (
            error
            if isinstance(error, ConnectorUnavailable)
            else PeerProtocolError(f"'{self._agent.name}' refused '{answer.purpose}': {answer.error.message}")
        )

    def _settings(self, opened: JsonObject) -> list[tuple[str, JsonObject]]:
        """What the session still has to be told: the mode in which it asks us, and the model."""
        session: JsonObject = {"sessionId": self._opened_id}
        calls: list[tuple[str, JsonObject]] = []
        modes = object_in(opened.get("modes"))
        known = [plain_text_in(one.get("id")) for one in objects_in(modes.get("availableModes"))]
        mode = self._opening.mode
        if mode is not None and mode != modes.get("currentModeId"):
            if known and mode not in known:
                raise NotSupported(f"'{self._agent.name}' has no mode '{mode}'; it has: {', '.join(known)}")
            calls.append(("session/set_mode", {**session, "modeId": mode}))
        if self._opening.model is not None:
            calls += self._model_call(opened, session, self._opening.model)
        if self._agent.title_method is not None:
            calls.append((self._agent.title_method, {**session, "title": _TITLE}))
        return calls

    def _model_call(self, opened: JsonObject, session: JsonObject, model: str) -> list[tuple[str, JsonObject]]:
        for option in objects_in(opened.get("configOptions")):
            if option.get("category") == "model" or option.get("id") == "model":
                if option.get("currentValue") == model:
                    return []
                params: JsonObject = {**session, "configId": option.get("id"), "value": model}
                return [("session/set_config_option", params)]
        models = object_in(opened.get("models"))
        if not models:
            raise NotSupported(f"'{self._agent.name}' lets nobody choose its model; it was asked for '{model}'")
        if models.get("currentModelId") == model:
            return []
        return [("session/set_model", {**session, "modelId": model})]
