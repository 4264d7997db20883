"""What an agent may have its client do on this machine: read and write files, run commands. Pure.

A read is done at once; a write and a command are acts, so each is a request for approval of the turn.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import cast

from connectors._json import JsonObject, compact_json, object_in, objects_in, plain_text_in, text_in
from connectors._jsonrpc import Asked
from harness.contract.requests import HostRequest, HostResponse, OptionKind, RequestKind, RequestOption
from harness.contract.value import JsonValue
from harness.wire.json_rpc import INVALID_PARAMS, REQUEST_CANCELLED

READ, WRITE = "fs/read_text_file", "fs/write_text_file"
CREATE, OUTPUT, WAIT = "terminal/create", "terminal/output", "terminal/wait_for_exit"
KILL, RELEASE = "terminal/kill", "terminal/release"
NEED_TURN = frozenset({READ, WRITE, CREATE})
"""The others are about what a turn has started, and may come later."""

NOT_FOUND = -32002


class Refusal(Exception):
    """Why a call is not done, as the agent is told it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class ClientRights:
    """What the agent is offered: nothing, where the user has not said otherwise."""

    files: str = "none"
    terminals: bool = False

    @property
    def allows_acts(self) -> bool:
        return self.files == "write" or self.terminals

    @property
    def capabilities(self) -> JsonObject:
        """For `initialize`; what is off is not in it."""
        told: JsonObject = {}
        if self.files != "none":
            told["fs"] = {"readTextFile": True, "writeTextFile": self.files == "write"}
        if self.terminals:
            told["terminal"] = True
        return told

    @property
    def methods(self) -> frozenset[str]:
        files = {"none": (), "read": (READ,), "write": (READ, WRITE)}[self.files]
        return frozenset((*files, *((CREATE, OUTPUT, WAIT, KILL, RELEASE) if self.terminals else ())))


NO_RIGHTS = ClientRights()


@dataclass(frozen=True, slots=True)
class Write:
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """`arguments` null: `program` is a whole line for the shell."""

    program: str
    arguments: list[str] | None
    cwd: str | None
    env: dict[str, str]

    @property
    def line(self) -> str:
        return self.program if self.arguments is None else shlex.join([self.program, *self.arguments])


def write_of(params: JsonObject) -> Write:
    path, text = params.get("path"), params.get("content")
    if not isinstance(path, str) or not isinstance(text, str):
        raise Refusal(INVALID_PARAMS, "'path' and 'content' must be texts")
    return Write(path, text_in(text))


def command_of(params: JsonObject) -> Command:
    program, arguments, cwd = params.get("command"), params.get("args"), params.get("cwd")
    if not isinstance(program, str) or not program.strip() or not isinstance(cwd, str | None):
        raise Refusal(INVALID_PARAMS, "'command' must be a text that is not empty, 'cwd' a text")
    given = cast(list[JsonValue], arguments) if isinstance(arguments, list) else []
    told = [one for one in given if isinstance(one, str)]
    if told != (arguments or []):
        raise Refusal(INVALID_PARAMS, "'args' must be a list of texts")
    env = {plain_text_in(one.get("name")): plain_text_in(one.get("value")) for one in objects_in(params.get("env"))}
    if any("=" in name or not name for name in env) or "\0" in "".join((program, *told, *env, *env.values())):
        raise Refusal(INVALID_PARAMS, "'env' must name variables, and no text may hold a zero byte")
    return Command(program, told or None, cwd, env)


def approval_of(asked: Asked) -> HostRequest:
    """
    Raises:
        Refusal: the call is malformed: nobody is asked.
    """
    shown: JsonObject
    if asked.method == WRITE:
        write = write_of(asked.params)
        shown, title, target = {"path": write.path, "content": write.text}, f"Write {write.path}", write.path
    else:
        command = command_of(asked.params)
        optional: JsonObject = {"args": command.arguments, "cwd": command.cwd, "env": _pairs(command.env)}
        shown = {"command": command.program, **{name: value for name, value in optional.items() if value}}
        title, target = f"Run {command.line}", command.line
    return HostRequest(
        kind=RequestKind.APPROVAL,
        peer_request_id=asked.key,
        tool_name=asked.method,
        arguments_json=compact_json(shown),
        options=[
            RequestOption(id="allow", kind=OptionKind.ALLOW_ONCE, label="Allow"),
            RequestOption(id="deny", kind=OptionKind.DENY, label="Deny"),
        ],
        title=title,
        target=target,
        read_only=False,
    )


def approved(asked: Asked, request: HostRequest, response: HostResponse) -> JsonObject:
    """What is to be done, with the host's changes.

    Raises:
        Refusal: the host has denied it.
    """
    option = request.option(response.selected_option)
    if option is None or option.kind != OptionKind.ALLOW_ONCE:
        raise Refusal(REQUEST_CANCELLED, response.reason or f"'{asked.method}' was denied by the host")
    if response.updated_arguments_json is None:
        return asked.params
    kept = {name: asked.params[name] for name in ("sessionId", "outputByteLimit") if name in asked.params}
    return {**kept, **object_in(json.loads(response.updated_arguments_json))}


def _pairs(env: dict[str, str]) -> list[JsonObject]:
    return [{"name": name, "value": value} for name, value in env.items()]
