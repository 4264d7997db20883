"""What a user may set: `connector_options_json` of the connector `anthropic`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from harness.errors import ConnectorUnavailable
from harness.model_loop import LoopConfig

OFFICIAL_URL = "https://api.anthropic.com"
OFFICIAL_WINDOW = 200_000
RESTRICTED = frozenset({"base_url", "api_key_env"})
"""They name a target, or what is told to it beside the conversation."""
API_VERSION = "2023-06-01"


class AnthropicConfig(LoopConfig):
    """The Messages API, Anthropic's own or another server's by `base_url`."""

    base_url: str | None = None
    """Null: `ANTHROPIC_BASE_URL`, else Anthropic's own."""
    api_key_env: str | None = None
    """The environment variable with the key; null: `ANTHROPIC_API_KEY`, which no other server than Anthropic's gets."""
    max_tokens: int = Field(default=8192, ge=1)
    """The API wants a limit for each answer; a smaller one of the conversation or turn counts instead."""
    cache: bool = True
    """Mark the stable beginning of the prompt, so that the next round reads it from the cache."""

    @field_validator("base_url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        if value is not None and urlsplit(value).scheme not in ("http", "https"):
            raise ValueError("must begin with http:// or https://")
        return value

    def target(self, environment: Mapping[str, str] = os.environ) -> tuple[str, dict[str, str]]:
        """Where requests go, and the headers with the key for it.

        Raises:
            ConnectorUnavailable: a key is needed and not there.
        """
        url = (self.base_url or environment.get("ANTHROPIC_BASE_URL") or OFFICIAL_URL).rstrip("/")
        is_official = is_anthropics_own(url)
        # a key never goes to a server it was not meant for
        variable = self.api_key_env or ("ANTHROPIC_API_KEY" if self.base_url is None or is_official else None)
        key = environment.get(variable) if variable is not None else None
        if key is None and (is_official or self.api_key_env is not None):
            raise ConnectorUnavailable(
                f"no API key in '{variable}'; type: export {variable}=...", reason="not_logged_in", variable=variable
            )
        return url, {"anthropic-version": API_VERSION, "x-api-key": key or "none"}


def is_anthropics_own(url: str) -> bool:
    return urlsplit(url).hostname == urlsplit(OFFICIAL_URL).hostname
