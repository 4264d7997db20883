"""ACP's schema as the package `agent-client-protocol` has it: what we say must be in it, to the last member."""

from __future__ import annotations

from typing import Any

from acp import schema
from pydantic import BaseModel, TypeAdapter

from connectors._json import JsonObject
from connectors._jsonrpc import Asked, JsonRpc, RpcEvent

REQUESTS: dict[str, Any] = {
    "initialize": schema.InitializeRequest,
    "authenticate": schema.AuthenticateRequest,
    "session/new": schema.NewSessionRequest,
    "session/load": schema.LoadSessionRequest,
    "session/resume": schema.ResumeSessionRequest,
    "session/set_mode": schema.SetSessionModeRequest,
    "session/set_config_option": schema.SetSessionConfigOptionSelectRequest,
    "session/prompt": schema.PromptRequest,
    "session/cancel": schema.CancelNotification,
}
ANSWERS: dict[str, Any] = {
    "session/request_permission": schema.RequestPermissionResponse,
    "elicitation/create": schema.CreateElicitationResponse,
    "fs/read_text_file": schema.ReadTextFileResponse,
    "fs/write_text_file": schema.WriteTextFileResponse,
    "terminal/create": schema.CreateTerminalResponse,
    "terminal/output": schema.TerminalOutputResponse,
    "terminal/wait_for_exit": schema.WaitForTerminalExitResponse,
    "terminal/kill": schema.KillTerminalResponse,
    "terminal/release": schema.ReleaseTerminalResponse,
}
NOT_IN_SCHEMA = frozenset({"session/set_model", "session/set_title"})
"""The first is older than the schema, and two agents answer nothing else; the second is codex-acp's own."""
EXTENSIONS = frozenset({"systemPrompt"})
"""Of codex-acp, which announces it."""


class CheckedJsonRpc(JsonRpc):
    """Fails where something is sent that the schema does not know."""

    def __init__(self) -> None:
        super().__init__()
        self._methods: dict[str | int, str] = {}

    def receive(self, data: bytes) -> RpcEvent:
        event = super().receive(data)
        if isinstance(event, Asked):
            self._methods[self._theirs[event.key]] = event.method
        return event

    def _send(self, message: JsonObject) -> None:
        check(message, self._methods)
        super()._send(message)


def check(message: JsonObject, methods: dict[str | int, str]) -> None:
    """`methods` are those of the agent's requests, by id."""
    method = message.get("method")
    if isinstance(method, str):
        if method not in NOT_IN_SCHEMA:
            same(REQUESTS[method], message["params"])
    elif "error" in message:
        same(schema.Error, message["error"])
    else:
        rpc_id = message["id"]
        assert isinstance(rpc_id, str | int)
        same(ANSWERS[methods[rpc_id]], message["result"])


def same(model: Any, said: Any) -> None:
    """The model reads it, and drops none of it: what it does not know it would leave out."""
    known: Any = {name: value for name, value in said.items() if name not in EXTENSIONS}
    read: Any = TypeAdapter(model).validate_python(known)
    assert isinstance(read, BaseModel)
    assert read.model_dump(mode="json", by_alias=True, exclude_unset=True) == known
