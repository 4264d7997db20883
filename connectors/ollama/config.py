"""What a user may set: `connector_options_json` of the connector `ollama`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from harness.errors import InvalidArgument
from harness.model_loop import LoopConfig

DEFAULT_URL = "http://127.0.0.1:11434"
DEFAULT_MODEL = "qwen3:4b-instruct"
DEFAULT_NUM_CTX = 16_384
RESTRICTED = frozenset({"base_url", "allow_cloud"})
"""One names a target, the other lets the conversation leave the machine."""


class OllamaConfig(LoopConfig):
    """`num_ctx` is always sent: without it the server takes 4096 on most machines and cuts the prompt silently."""

    base_url: str | None = None
    """Null: `OLLAMA_HOST`, else the usual address on this machine."""
    num_ctx: int = Field(default=DEFAULT_NUM_CTX, ge=256)
    """Tokens of prompt and answer; less where the model's own window is smaller."""
    keep_alive: str = "10m"
    """How long the model stays loaded after the last request."""
    warm_up: bool = True
    """Load the model before the first message is sent, so that loading is not mistaken for silence."""
    allow_cloud: bool = False
    """Models with a cloud name are run by a remote service."""
    options: dict[str, Any] = {}
    """More of the server's options, such as `top_p` or `seed`."""

    def url(self, environment: Mapping[str, str] = os.environ) -> str:
        named = (self.base_url or environment.get("OLLAMA_HOST") or DEFAULT_URL).rstrip("/")
        if "://" not in named:
            named = f"http://{named}"
        if ":" not in named.partition("://")[2]:
            named = f"{named}:11434"
        return named.replace("://0.0.0.0:", "://127.0.0.1:")

    def check_model(self, model: str) -> None:
        """Raises:
        InvalidArgument: it runs elsewhere, and nobody allowed that.
        """
        tag = model.rpartition(":")[2]
        if not self.allow_cloud and (tag == "cloud" or tag.endswith("-cloud")):
            raise InvalidArgument(
                f"the model '{model}' runs on a remote service; set the connector option 'allow_cloud' to send it there"
            )
