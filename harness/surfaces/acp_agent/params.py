"""What a client's requests hold, as far as we read it (pure). Members that are not known are left alone."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from harness.contract.value import JsonValue
from harness.errors import InvalidArgument
from harness.wire.json_rpc import JsonObject


class Params(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class ClientCapabilities(Params):
    elicitation: dict[str, JsonValue] | None = None

    @property
    def has_forms(self) -> bool:
        """Whether a question can be put to the person."""
        return self.elicitation is not None and self.elicitation.get("form") is not None


class Initialize(Params):
    protocol_version: int
    client_capabilities: ClientCapabilities | None = None


class Pair(Params):
    name: str
    value: str


class ServerParams(Params):
    """An MCP server; one without a type is a program."""

    name: str
    type: str = "stdio"
    command: str | None = None
    args: list[str] = []
    env: list[Pair] = []
    url: str | None = None
    headers: list[Pair] = []


class NewSession(Params):
    cwd: str
    mcp_servers: list[ServerParams] = []
    additional_directories: list[str] = []


class EarlierSession(NewSession):
    """For `session/load`, `session/resume` and `session/fork`."""

    session_id: str


class OfSession(Params):
    """For requests that name a session and nothing else."""

    session_id: str


class Prompt(OfSession):
    prompt: list[dict[str, JsonValue]]


class SetMode(OfSession):
    mode_id: str


class SetConfigOption(OfSession):
    config_id: str
    value: str


class ListSessions(Params):
    cwd: str | None = None


P = TypeVar("P", bound=Params)


def read_params(kind: type[P], params: JsonObject) -> P:
    """Raises:
    InvalidArgument: names the member that cannot be used.
    """
    try:
        return kind.model_validate(params)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        member = ".".join(str(part) for part in first["loc"])
        raise InvalidArgument(f"'{member}' cannot be used: {first['msg']}") from None
