"""The user's configuration: one TOML file, `config.toml` in the user's configuration directory, or `--config`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from harness.contract.delegation import RequestPolicy
from harness.contract.options import ConversationOptions, Limits
from harness.contract.value import JsonValue
from harness.errors import ConfigError
from harness.policy import policy_of
from harness.policy.file_form import wrong
from harness.server_record import APPLICATION
from harness.settings import Price
from harness.store.durability import Durability

_SECTIONS = ("policy", "limits", "prices", "advisor", "journal")
_JOURNAL = ("store", "durability")
_ADVISOR = ("connector", "model", "max_calls", "options")
_LIMITS = tuple(Limits.model_fields)
_FIGURES = ("input", "output", "cached_input", "cache_write")


@dataclass(frozen=True)
class Configuration:
    """What the file says; null and empty where it says nothing."""

    file: Path
    policy: RequestPolicy | None = None
    limits: Limits = field(default_factory=Limits)
    prices: tuple[Price, ...] = ()
    advisor: AdvisorChoice | None = None
    journal: JournalChoice = field(default_factory=lambda: JournalChoice())


@dataclass(frozen=True)
class JournalChoice:
    """`[journal]`: its file in `store` ('memory' for none), and `durability`: 'process', or 'power' for a sync each."""

    store: str | None = None
    durability: Durability = "process"


@dataclass(frozen=True)
class AdvisorChoice:
    """Who advises: `[advisor]` with `connector`, `model`, `max_calls` and, for the connector, `[advisor.options]`."""

    options: ConversationOptions
    max_calls: int | None = None


def read_configuration(file: Path | None) -> Configuration:
    """The configuration in this file, or in the user's own, which need not exist.

    Raises:
        ConfigError: it cannot be read, or has a key that is not known; names file, key and what was expected.
    """
    path = file or default_file()
    if file is None and not path.exists():
        return Configuration(path)
    table = read_toml(path)
    name = str(path)
    for key in table:
        if key not in _SECTIONS:
            raise wrong(name, key, f"one of {', '.join(_SECTIONS)}")
    policy = _table(table, "policy", name)
    return Configuration(
        path,
        policy=None if policy is None else policy_of(policy, name, "policy"),
        limits=_limits(_table(table, "limits", name) or {}, name),
        advisor=_advisor(_table(table, "advisor", name), name),
        journal=_journal(_table(table, "journal", name) or {}, name),
        prices=tuple(_price(model, one, name) for model, one in (_table(table, "prices", name) or {}).items()),
    )


def default_file() -> Path:
    from platformdirs import user_config_path

    return user_config_path(APPLICATION) / "config.toml"


def read_toml(path: Path) -> Mapping[str, JsonValue]:
    """The tables of a TOML file.

    Raises:
        ConfigError: there is no such file, or it is no TOML.
    """
    try:
        return toml_of(path.read_bytes(), path)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}", file=str(path)) from error


def toml_of(data: bytes, path: Path) -> Mapping[str, JsonValue]:
    try:
        return tomllib.loads(data.decode())
    except ValueError as error:  # no UTF-8 is one too
        raise ConfigError(f"{path}: {error}", file=str(path), expected="TOML") from error


def _table(table: Mapping[str, JsonValue], key: str, file: str) -> Mapping[str, JsonValue] | None:
    value = table.get(key)
    if value is not None and not isinstance(value, dict):
        raise wrong(file, key, f"a table [{key}]")
    return cast(Mapping[str, JsonValue] | None, value)


def _limits(table: Mapping[str, JsonValue], file: str) -> Limits:
    for key in table:
        if key not in _LIMITS:
            raise wrong(file, f"limits.{key}", f"one of {', '.join(_LIMITS)}")
    try:
        return Limits.model_validate(table, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise wrong(file, f"limits.{first['loc'][0]}", f"a number above 0; {first['msg']}") from None


def _journal(table: Mapping[str, JsonValue], file: str) -> JournalChoice:
    for key in table:
        if key not in _JOURNAL:
            raise wrong(file, f"journal.{key}", f"one of {', '.join(_JOURNAL)}")
    store, durability = table.get("store"), table.get("durability", "process")
    if store is not None and (not isinstance(store, str) or not store):
        raise wrong(file, "journal.store", "a file, or 'memory'")
    if durability != "process" and durability != "power":
        raise wrong(file, "journal.durability", "'process' or 'power'")
    return JournalChoice(store, durability)


def _advisor(table: Mapping[str, JsonValue] | None, file: str) -> AdvisorChoice | None:
    if table is None:
        return None
    for key in table:
        if key not in _ADVISOR:
            raise wrong(file, f"advisor.{key}", f"one of {', '.join(_ADVISOR)}")
    connector, model, max_calls = table.get("connector"), table.get("model"), table.get("max_calls")
    if not isinstance(connector, str) or not connector:
        raise wrong(file, "advisor.connector", "the name of a connector")
    if model is not None and not isinstance(model, str):
        raise wrong(file, "advisor.model", "the name of a model")
    if max_calls is not None and (isinstance(max_calls, bool) or not isinstance(max_calls, int) or max_calls < 1):
        raise wrong(file, "advisor.max_calls", "a whole number above 0")
    given = _table(table, "options", file)
    options = None if given is None else json.dumps(given)
    return AdvisorChoice(
        ConversationOptions(connector=connector, model=model, connector_options_json=options), max_calls
    )


def _price(model: str, value: JsonValue, file: str) -> Price:
    """`[prices."gpt-5*"]` with `input`, `output` and, where they differ, `cached_input`, `cache_write`."""
    where = f"prices.{model}"
    if not isinstance(value, dict):
        raise wrong(file, where, "a table with 'input' and 'output', in USD for a million tokens")
    table = cast(Mapping[str, JsonValue], value)
    for key, figure in table.items():
        if key not in _FIGURES:
            raise wrong(file, f"{where}.{key}", f"one of {', '.join(_FIGURES)}")
        if isinstance(figure, bool) or not isinstance(figure, int | float) or figure < 0:
            raise wrong(file, f"{where}.{key}", "USD for a million tokens, a number")
    if not {"input", "output"} <= set(table):
        raise wrong(file, where, "both 'input' and 'output'")
    return Price(model, **{str(key): float(figure) for key, figure in table.items()})
