"""Options -> command line and environment of `codex app-server`. Pure.

The configuration is on the command line, so that there is no file to share or to fall back from; the tools, prompts and
the secrets of tool sources go through stdin, the key through the environment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from connectors._environment import base_environment
from connectors.codex.config import CodexOptions
from harness.errors import ConnectorUnavailable

KEY_VARIABLE = "HARNESS_CODEX_KEY"
PROVIDER = "harness"
_API = "https://api.openai.com/v1"
_FLAGS = ("app-server", "--strict-config")
_SETTINGS: Mapping[str, object] = {
    # no traffic but the model's: without these two Codex fetches a list of plugins from the internet at its first start
    "features.plugins": False,
    "features.apps": False,
    # it would warn of the features that we turn on, before the first turn or in it
    "suppress_unstable_features_warning": True,
    "check_for_update_on_startup": False,
    "analytics.enabled": False,
    "feedback.enabled": False,
    "otel.exporter": "none",
    "history.persistence": "none",
    "cli_auth_credentials_store": "file",
}
_RETRIES = 1
"""Its own defaults send one failing request thirty times."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What is started. The environment holds the key: show names only."""

    argv: list[str]
    env: dict[str, str]


def login_of(codex: CodexOptions, environ: Mapping[str, str]) -> Literal["user", "key"]:
    """Which credentials Codex gets: the option, else a key if there is one, else the user's login."""
    if codex.login is not None:
        return codex.login
    return "key" if codex.key is not None or codex.base_url or environ.get("OPENAI_API_KEY") else "user"


def launch(program: str, codex: CodexOptions, environ: Mapping[str, str], home: Path) -> Launch:
    """Command line and environment.

    Raises:
        ConnectorUnavailable: a key is asked for and there is none.
    """
    settings = dict(_SETTINGS)
    extra = {"CODEX_HOME": str(home)}
    if login_of(codex, environ) == "key":
        settings |= _provider(codex)
        extra[KEY_VARIABLE] = _key(codex, environ)
    flags = [part for name, value in settings.items() for part in ("-c", f"{name}={json.dumps(value)}")]
    env = base_environment(environ, extra={**extra, **codex.env})
    return Launch([program, *_FLAGS, *flags], env)


def _provider(codex: CodexOptions) -> dict[str, object]:
    """A provider of ours: the retries of the built-in one cannot be set."""
    entry = f"model_providers.{PROVIDER}"
    return {
        "model_provider": PROVIDER,
        f"{entry}.name": PROVIDER,
        f"{entry}.base_url": codex.base_url or _API,
        f"{entry}.wire_api": "responses",
        f"{entry}.env_key": KEY_VARIABLE,
        f"{entry}.request_max_retries": _RETRIES,
        f"{entry}.stream_max_retries": _RETRIES,
        f"{entry}.supports_websockets": False,
    }


def _key(codex: CodexOptions, environ: Mapping[str, str]) -> str:
    if codex.key is not None:
        return codex.key.get_secret_value()
    # with an address of its own the conversation does not take along a key that belongs elsewhere
    found = None if codex.base_url else environ.get("OPENAI_API_KEY")
    if found:
        return found
    if codex.base_url:
        return "none"
    raise ConnectorUnavailable(
        "connector 'codex' is set to log in with a key and there is none; "
        "type: export OPENAI_API_KEY=..., or use the option login=user",
        reason="not_logged_in",
    )
