"""What a user may set: `connector_options_json` of the connector `fake`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from connectors.fake.parts import Style
from connectors.fake.script import Script, read_script
from harness.contract.capabilities import Resume
from harness.contract.options import ConversationOptions
from harness.errors import ConfigError, InvalidArgument

RESTRICTED = frozenset({"script"})
"""It names a file of the server's machine."""


class FakeConfig(BaseModel):
    """One of `script` (a YAML or JSON file), `turns` and `steps` (a single turn); without any the peer echoes.

    The others replace the script's own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    script: str | None = None
    turns: list[list[dict[str, Any]]] | None = None
    steps: list[dict[str, Any]] | None = None
    style: Style | None = None
    resume: Resume | None = None
    repeat: bool | None = None
    on_peer_lost: Literal["fail", "continue"] = "fail"
    """Whether the harness itself goes on with a turn whose peer was lost."""
    capabilities: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_script(self) -> FakeConfig:
        given = [name for name in ("script", "turns", "steps") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"'{given[0]}' and '{given[1]}' exclude each other: keep one")
        return self

    @property
    def overrides(self) -> dict[str, Any]:
        """Members of the script that these options replace."""
        return self.model_dump(include={"style", "resume", "repeat", "capabilities"}, exclude_none=True)


def config_of(options: ConversationOptions) -> FakeConfig:
    """Raises:
    InvalidArgument: connector options that are not understood.
    """
    try:
        return FakeConfig.model_validate_json(options.connector_options_json or "{}")
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        message = str(first["msg"]).removeprefix("Value error, ")
        where = f" '{name}'" if name else "s"
        raise InvalidArgument(f"connector option{where} of 'fake': {message}") from error


def script_of(config: FakeConfig, default: Script) -> Script:
    """The script that the options name, else the default one.

    Raises:
        ConfigError: a script that cannot be read or used; names file, turn, step and member.
    """
    script = _own_script(config) or default
    return read_script({**dict(script), **config.overrides}) if config.overrides else script


def read_script_file(path: Path) -> Script:
    """A script in a file: `.json`, anything else is YAML."""
    try:
        text = path.read_text(encoding="utf-8")
        value = json.loads(text) if path.suffix == ".json" else yaml.load(text, _PlainYaml)
    except FileNotFoundError:
        raise ConfigError(f"no script '{path}': name a YAML or JSON file", file=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the script '{path}': {error}", file=str(path)) from error
    except (json.JSONDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"the script '{path}' is broken: {' '.join(str(error).split())}", file=str(path)) from error
    return read_script(value, file=str(path))


def _own_script(config: FakeConfig) -> Script | None:
    if config.script is not None:
        return read_script_file(Path(config.script))
    if config.turns is not None:
        return read_script(config.turns)
    return read_script([config.steps]) if config.steps is not None else None


class _PlainYaml(yaml.SafeLoader):
    """YAML whose values are JSON's: a date stays the text that a tool's arguments would hold."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
