"""A policy as a TOML table writes it (pure: the table was read elsewhere)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import cast

from harness.contract.delegation import ArgumentPattern, PolicyMode, PolicyRule, QuestionPolicy, RequestPolicy
from harness.contract.value import JsonValue
from harness.errors import ConfigError, InvalidArgument
from harness.policy.rules import problem_of_allow_rule
from harness.policy.text_form import rule_of_text

_KEYS = ("mode", "deny", "ask", "allow", "questions")
_RULE_KEYS = ("tool", "kind", "connector", "arguments", "reason")


def policy_of(table: Mapping[str, JsonValue], file: str, section: str = "") -> RequestPolicy:
    """The policy in this table; a rule is a short text, or a table with the fields of a `PolicyRule`.

    Raises:
        ConfigError: an unknown key or a value that cannot be used; names the file, the key and what was expected.
    """
    prefix = f"{section}." if section else ""
    for key in table:
        if key not in _KEYS:
            raise wrong(file, f"{prefix}{key}", f"one of {', '.join(_KEYS)}")
    return RequestPolicy(
        mode=_member(PolicyMode, table.get("mode", PolicyMode.DEFAULT), file, f"{prefix}mode"),
        questions=_member(QuestionPolicy, table.get("questions", QuestionPolicy.ROUTE), file, f"{prefix}questions"),
        deny=_rules(table.get("deny", []), file, f"{prefix}deny"),
        ask=_rules(table.get("ask", []), file, f"{prefix}ask"),
        allow=_sound(_rules(table.get("allow", []), file, f"{prefix}allow"), file, f"{prefix}allow"),
    )


def wrong(file: str, key: str, expected: str) -> ConfigError:
    """A key of a file that cannot be used."""
    return ConfigError(f"{file}: '{key}': expected {expected}", file=file, key=key, expected=expected)


def _member(kind: type[StrEnum], value: JsonValue, file: str, key: str) -> StrEnum:
    try:
        return kind(value)
    except ValueError:
        raise wrong(file, key, f"one of {', '.join(kind)}") from None


def _rules(value: JsonValue, file: str, key: str) -> list[PolicyRule]:
    if not isinstance(value, list):
        raise wrong(file, key, "a list of rules")
    return [_rule(one, file, f"{key}[{number}]") for number, one in enumerate(cast(Sequence[JsonValue], value))]


def _rule(value: JsonValue, file: str, key: str) -> PolicyRule:
    if isinstance(value, str):
        try:
            return rule_of_text(value)
        except InvalidArgument as error:
            raise wrong(file, key, f"a rule such as Bash(git diff *); {error.message}") from None
    if not isinstance(value, dict):
        raise wrong(file, key, "a text such as Bash(git diff *), or a table with 'tool'")
    table = cast(Mapping[str, JsonValue], value)
    for name in table:
        if name not in _RULE_KEYS:
            raise wrong(file, f"{key}.{name}", f"one of {', '.join(_RULE_KEYS)}")
    return PolicyRule(
        tool=_text(table, "tool", file, key) or "*",
        kind=_text(table, "kind", file, key),
        connector=_text(table, "connector", file, key),
        arguments=_patterns(table.get("arguments", {}), file, f"{key}.arguments"),
        reason=_text(table, "reason", file, key),
    )


def _patterns(value: JsonValue, file: str, key: str) -> list[ArgumentPattern]:
    members = cast(Mapping[str, JsonValue], value) if isinstance(value, dict) else {"": None}
    if not all(isinstance(pattern, str) for pattern in members.values()):
        raise wrong(file, key, 'a table of argument names and patterns, { command = "git diff *" }')
    return [ArgumentPattern(name=name, pattern=str(pattern)) for name, pattern in members.items()]


def _text(table: Mapping[str, JsonValue], name: str, file: str, key: str) -> str | None:
    value = table.get(name)
    if value is not None and not (isinstance(value, str) and value):
        raise wrong(file, f"{key}.{name}", "a text")
    return value


def _sound(rules: list[PolicyRule], file: str, key: str) -> list[PolicyRule]:
    for number, rule in enumerate(rules):
        problem = problem_of_allow_rule(rule)
        if problem is not None:
            raise wrong(file, f"{key}[{number}]", f"a rule that can be kept: {problem}")
    return rules
