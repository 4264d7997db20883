"""What a user may set: `connector_options_json` of the connector `remote`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from harness.contract.options import ConversationOptions
from harness.errors import ConnectorUnavailable, InvalidArgument
from harness.server_record import read_token_file

RESTRICTED = frozenset({"url", "token", "token_file", "connector", "options"})
"""Targets and files; and what the other harness is asked to do is asked with this one's token, not the caller's."""


class RemoteConfig(BaseModel):
    """Where the other harness is, and what it shall use."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    url: str | None = None
    """Such as http://127.0.0.1:8800."""
    token: SecretStr | None = None
    """Better a file: whoever lists this machine's processes can read what was typed."""
    token_file: str | None = None
    """Without either the token of a server that this user runs on this machine is found."""
    connector: str | None = None
    """Of the other harness, with a variant (`claude:bridge`). Null: its default."""
    model: str | None = None
    """Where the conversation names none."""
    options: dict[str, Any] = {}
    """Connector options of that connector."""
    on_peer_lost: Literal["fail", "continue"] = "fail"
    """`continue`: after the other harness was lost in a turn the conversation goes on by itself, once, and says so."""

    def server_url(self) -> str:
        """Raises:
        ConnectorUnavailable: nobody said which server.
        """
        if self.url is None:
            message = "connector 'remote' needs another harness: type -O url=http://127.0.0.1:8800"
            raise ConnectorUnavailable(message, reason="not_configured")
        return self.url

    def secret(self) -> str | None:
        """The token that was given, null when it is to be found.

        Raises:
            ConfigError: the file cannot be used.
        """
        if self.token is not None:
            return self.token.get_secret_value()
        return read_token_file(Path(self.token_file)) if self.token_file is not None else None


def config_of(options: ConversationOptions) -> RemoteConfig:
    """Raises:
    InvalidArgument: connector options that are not understood; never repeats a value, it may be a secret.
    """
    try:
        return RemoteConfig.model_validate_json(options.connector_options_json or "{}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"]) or "connector_options_json"
        known = ", ".join(sorted(RemoteConfig.model_fields))
        raise InvalidArgument(f"connector 'remote': option '{name}': {first['msg']}; known options: {known}") from None
