"""What a user may set: `connector_options_json` of the connector `openai`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import field_validator

from connectors._provider_http import is_loopback
from harness.errors import ConnectorUnavailable
from harness.model_loop import LoopConfig

OFFICIAL_URL = "https://api.openai.com/v1"
RESTRICTED = frozenset({"base_url", "api_key_env", "extra_headers", "extra_body"})
"""They name a target, or what is told to it beside the conversation."""
Quirks: TypeAlias = Literal["openai", "llama-server", "ollama", "compatible"]


class OpenAiConfig(LoopConfig):
    """`api` is the Responses API or Chat Completions; any server that speaks one of them by `base_url`."""

    api: Literal["responses", "chat"] = "responses"
    base_url: str | None = None
    """Null: `OPENAI_BASE_URL`, else OpenAI's own."""
    api_key_env: str | None = None
    """The environment variable with the key; null: `OPENAI_API_KEY`, which no other server than OpenAI's gets."""
    quirks: Quirks | None = None
    """What the server needs otherwise; null: `openai` for OpenAI's own, `compatible` for others."""
    state: Literal["history", "server"] = "history"
    """Send the whole history each time, or let the server keep it (`previous_response_id`); Responses API only."""
    encrypted_reasoning: bool = True
    """Ask for reasoning items that can be passed back without being stored."""
    reasoning_summary: Literal["auto", "concise", "detailed"] | None = None
    """Show what the model thinks, where the account may see it."""
    send_reasoning: bool = False
    """Pass `reasoning_content` back in chat mode; a few servers want it."""
    images: bool = True
    """False for a model that sees no images: they are refused before anything is sent."""
    extra_body: dict[str, Any] = {}
    extra_headers: dict[str, str] = {}

    @field_validator("base_url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        if value is not None and urlsplit(value).scheme not in ("http", "https"):
            raise ValueError("must begin with http:// or https://")
        return value

    def target(self, environment: Mapping[str, str] = os.environ) -> Target:
        """Where requests go and with which key.

        Raises:
            ConnectorUnavailable: a key is needed and not there.
        """
        named = self.base_url or environment.get("OPENAI_BASE_URL")
        url = (named or OFFICIAL_URL).rstrip("/")
        is_official = urlsplit(url).hostname == urlsplit(OFFICIAL_URL).hostname
        # a key never goes to a server it was not meant for
        variable = self.api_key_env or ("OPENAI_API_KEY" if self.base_url is None or is_official else None)
        key = environment.get(variable) if variable is not None else None
        if key is None and (is_official or self.api_key_env is not None):
            raise ConnectorUnavailable(
                f"no API key in '{variable}'; type: export {variable}=...", reason="not_logged_in", variable=variable
            )
        quirks = self.quirks or ("openai" if is_official else "compatible")
        return Target(url, key or "none", quirks, is_loopback(url))


class Target:
    """A server and the key for it; the key is in no text of this object."""

    def __init__(self, url: str, key: str, quirks: Quirks, is_loopback: bool) -> None:
        self.url = url
        self.key = key
        self.quirks: Quirks = quirks
        self.is_loopback = is_loopback
        """Then no proxy of the machine is asked."""
