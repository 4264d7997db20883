"""What a scripted model says: one entry per model call, in the caller's words, free of any vendor's dialect.

    - thinking: Two cities, two calls.
      text: ["I will ", "look."]                        # a list streams piece by piece
      calls:
        - {name: get_weather, arguments: {city: Oslo}}  # the caller's name, not the peer's prefixed one
        - {name: get_weather, arguments: {city: Rome}, id: rome}
    - text: "In Rome it is {{results.rome}}."
      usage: {input_tokens: 1500, cached_input_tokens: 300, output_tokens: 20}
    - error: {status: 429, message: slow down, retry_after: 1}

Every retry of a peer is a model call of its own and takes the next entry.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeFloat,
    NonNegativeInt,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from harness.errors import ConfigError


class _Member(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScriptedCall(_Member):
    """A tool call of the model.

    `name` is the caller's name of the tool; a name the request does not offer is sent as it stands, as a model
    that makes up a tool would. Without `id` the call gets one that is unique for the run.
    """

    name: str = Field(min_length=1)
    arguments: dict[str, JsonValue] = {}
    arguments_json: str | None = None
    """The arguments as text, sent exactly so: `{"price": 1.10}` keeps its zero, and broken JSON stays broken."""
    id: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _one_form_of_arguments(self) -> ScriptedCall:
        if self.arguments and self.arguments_json is not None:
            raise ValueError("'arguments' and 'arguments_json' exclude each other: keep one")
        return self

    @property
    def arguments_text(self) -> str:
        if self.arguments_json is not None:
            return self.arguments_json
        return json.dumps(self.arguments, ensure_ascii=False)


class ScriptedUsage(_Member):
    """Token counts in the contract's words: `input_tokens` includes what was read from and written to the cache."""

    input_tokens: NonNegativeInt = 100
    cached_input_tokens: NonNegativeInt = 0
    cache_write_tokens: NonNegativeInt = 0
    output_tokens: NonNegativeInt = 20

    @model_validator(mode="after")
    def _cache_is_part_of_input(self) -> ScriptedUsage:
        if self.cached_input_tokens + self.cache_write_tokens > self.input_tokens:
            raise ValueError("'input_tokens' includes the cached and the cache-written ones: make it larger")
        return self


class ScriptedError(_Member):
    """The provider refuses: an HTTP error instead of an answer. `retry_after` is in seconds."""

    status: int = Field(ge=400, le=599)
    message: str
    retry_after: NonNegativeFloat | None = None


def _as_pieces(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Pieces: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_as_pieces)]


class ScriptEntry(_Member):
    """One model call: what the model answers, or how it fails to.

    `drop` and `hang` let all scripted content through and withhold the end of its last block and of the message:
    `drop` then cuts the connection, `hang` waits until the client goes. A request that does not stream gets no byte.
    """

    thinking: Pieces = ()
    text: Pieces = ()
    """May quote `{{results.<call id>}}`, or `{{results.<tool name>}}` while that tool was called once only."""
    calls: tuple[ScriptedCall, ...] = ()
    stop: str | None = Field(default=None, min_length=1)
    """`end_turn`, `tool_use`, `max_tokens`, `refusal` ..., passed on as it is; by default what fits the calls."""
    usage: ScriptedUsage = ScriptedUsage()
    delay_seconds: NonNegativeFloat = 0
    chunk_delay_seconds: NonNegativeFloat = 0
    error: ScriptedError | None = None
    drop: bool = False
    hang: bool = False

    @model_validator(mode="after")
    def _one_outcome(self) -> ScriptEntry:
        outcomes = [name for name in ("error", "drop", "hang") if getattr(self, name)]
        if len(outcomes) > 1:
            raise ValueError(f"'{outcomes[0]}' and '{outcomes[1]}' exclude each other: keep one")
        content = [name for name in ("thinking", "text", "calls", "stop") if name in self.model_fields_set]
        if self.error is not None and content:
            raise ValueError(f"an entry with 'error' has no '{content[0]}': the error is the whole answer")
        if not outcomes and not content:
            raise ValueError("an entry needs one of 'text', 'thinking', 'calls', 'stop', 'error', 'drop', 'hang'")
        return self


Script: TypeAlias = tuple[ScriptEntry, ...]
ScriptSource: TypeAlias = Path | Sequence[ScriptEntry | Mapping[str, Any]]
"""A YAML or JSON file, or the entries as Python values."""

_SCRIPT = TypeAdapter(Script)


class _PlainYaml(yaml.SafeLoader):
    """YAML whose values are JSON's: a date stays the text that a tool's arguments would hold."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_script(source: ScriptSource) -> Script:
    """The script in a file (`.json`, anything else is YAML) or in Python values.

    Raises:
        ConfigError: the file cannot be read, or an entry cannot be used; names file, entry and member.
    """
    if not isinstance(source, Path):
        return _validated(source, file=None)
    try:
        text = source.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"no script '{source}': name a YAML or JSON file", file=str(source)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the script '{source}': {error}", file=str(source)) from error
    try:
        value = json.loads(text) if source.suffix == ".json" else yaml.load(text, _PlainYaml)
    except json.JSONDecodeError as error:
        raise _broken(source, f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise _broken(source, where + (error.problem or "not readable")) from error
    except yaml.YAMLError as error:
        raise _broken(source, str(error).splitlines()[0]) from error
    return _validated(value, file=source)


def _broken(file: Path, problem: str) -> ConfigError:
    kind = "JSON" if file.suffix == ".json" else "YAML"
    return ConfigError(f"the script '{file}' is no {kind}: {problem}", file=str(file))


def _validated(value: object, *, file: Path | None) -> Script:
    try:
        return _SCRIPT.validate_python(value)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        first, more = problems[0], len(problems) - 1
        place = _place(first["loc"])
        where = ", ".join(part for part in (f"'{file}'" if file else "", place) if part)
        rest = f" (and {more} more)" if more else ""
        raise ConfigError(
            f"the script{' ' + where if where else ''}: {_problem(first)}{rest}",
            file=str(file) if file else None,
            key=place or None,
            expected="a list, one entry per model call" if not place else None,
        ) from error


def _place(location: tuple[int | str, ...]) -> str:
    """`(1, "calls", 0, "name")` as people count: `entry 2, 'calls[0].name'`."""
    if not location:
        return ""
    number, *members = location
    path = ""
    for member in members:
        path += f"[{member}]" if isinstance(member, int) else f".{member}" if path else member
    entry = f"entry {number + 1}" if isinstance(number, int) else str(number)
    return f"{entry}, '{path}'" if path else entry


def _problem(details: ErrorDetails) -> str:
    match details["type"]:
        case "extra_forbidden":
            return "unknown member, take it out or correct its name"
        case "missing":
            return "is missing"
        case "tuple_type" if not details["loc"]:
            return "must be a list with one entry per model call"
        case "model_type" | "dict_type":
            return f"must be a mapping, not {details['input']!r:.80}"
        case "value_error":
            return str(details["ctx"]["error"]) if "ctx" in details else details["msg"]
        case _:
            return f"{details['msg'][0].lower()}{details['msg'][1:]}, not {details['input']!r:.80}"
