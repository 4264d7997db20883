"""One rule against one call, in two spirits: surely meant (allow), or possibly meant (deny, ask)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from harness.contract.delegation import ArgumentPattern, PolicyRule
from harness.contract.value import JsonValue
from harness.policy import paths, shell, urls
from harness.policy.call import Place, PolicyCall
from harness.policy.globs import command_fits, is_literal, text_fits
from harness.policy.shapes import Sort, shape_of, sort_of


def allows(rule: PolicyRule, call: PolicyCall, place: Place) -> bool:
    """Whether the rule surely means this call: every argument pattern fits all of its argument."""
    if not _is_about(rule, call, unknown=False) or not text_fits(rule.tool, call.tool):
        return False
    arguments = call.arguments
    if not rule.arguments:
        return True
    return arguments is not None and all(_fits_surely(one, call.tool, arguments, place) for one in rule.arguments)


def concerns(rule: PolicyRule, call: PolicyCall, place: Place) -> bool:
    """Whether the rule may mean this call; what cannot be read is meant."""
    if not _is_about(rule, call, unknown=True) or not text_fits(rule.tool, call.tool, ignore_case=True):
        return False
    arguments = call.arguments
    return arguments is None or all(_may_fit(one, call.tool, arguments, place) for one in rule.arguments)


def problem_of_allow_rule(rule: PolicyRule) -> str | None:
    """Why it can never match, or would not mean what it seems to; null for a sound one."""
    for one in rule.arguments:
        sort = _sort(rule.tool, one.name)
        first = one.pattern.split(" ", 1)[0]
        if sort == Sort.COMMAND and not is_literal(first):
            return f"'{one.pattern}' leaves open which program runs; allow '{rule.tool}' as a whole if that is meant"
        if sort == Sort.URL and urls.wanted_host(one.pattern) is None:
            return f"'{one.pattern}' is no host; write domain:example.org or domain:*.example.org"
    return None


def _is_about(rule: PolicyRule, call: PolicyCall, *, unknown: bool) -> bool:
    """By kind and connector; `unknown` is what counts where nobody knows the connector."""
    if rule.kind not in (None, call.kind):
        return False
    if rule.connector is None or call.connector is None:
        return rule.connector is None or unknown
    return rule.connector in (call.connector, call.connector.partition(":")[0])


def _fits_surely(wanted: ArgumentPattern, tool: str, arguments: Mapping[str, JsonValue], place: Place) -> bool:
    value = _value(wanted.name, tool, arguments)
    sort = _sort(tool, wanted.name)
    if sort == Sort.COMMAND:
        return _command_is_surely(wanted.pattern, value)
    if sort == Sort.PATH:
        return (
            isinstance(value, str)
            and not _escapes_its_directory(tool, arguments)
            and paths.path_is_surely(wanted.pattern, value, place)
        )
    if sort == Sort.URL:
        return isinstance(value, str) and urls.url_is_surely(wanted.pattern, value)
    return value is not None and text_fits(wanted.pattern, _text(value))


def _command_is_surely(pattern: str, value: JsonValue) -> bool:
    command = shell.argv_command(cast(list[str], value)) if _is_argv(value) else value
    if not isinstance(command, str) or not is_literal(pattern.split(" ", 1)[0]):
        return False
    if is_literal(pattern) and pattern == command:
        return True  # written out to the last character, whatever it is
    return shell.is_plain(command) and command_fits(pattern, command)


def _may_fit(wanted: ArgumentPattern, tool: str, arguments: Mapping[str, JsonValue], place: Place) -> bool:
    readings: dict[Sort, Callable[[str], bool]] = {
        Sort.COMMAND: lambda text: any(
            command_fits(wanted.pattern, one, ignore_case=True) for one in shell.possible_commands(text)
        ),
        Sort.PATH: lambda text: paths.path_may_be(wanted.pattern, text, place),
        Sort.URL: lambda text: urls.url_may_be(wanted.pattern, text),
        Sort.TEXT: lambda text: text_fits(wanted.pattern, text, ignore_case=True),
    }
    value = _value(wanted.name, tool, arguments)
    if value is None:
        return False
    reads = readings[_sort(tool, wanted.name)]
    if _is_argv(value):
        words = cast(list[str], value)
        return reads(" ".join(words)) or any(reads(word) for word in words)
    return reads(_text(value))


def _sort(tool: str, argument: str) -> Sort:
    shape = shape_of(tool)
    return shape.sort if shape is not None and shape.argument == argument else sort_of(argument)


def _value(name: str, tool: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
    """The argument, also under another spelling of its name where only that is there."""
    if name in arguments:
        return arguments[name]
    shape = shape_of(tool)
    is_main = shape is not None and shape.argument == name
    if is_main and shape is not None and shape.sort != Sort.TEXT:
        others = [key for key in arguments if sort_of(key) == shape.sort]
        if len(others) == 1:
            return arguments[others[0]]
        if not others:
            return shape.default
    return None


def _escapes_its_directory(tool: str, arguments: Mapping[str, JsonValue]) -> bool:
    """A search whose own pattern leads out of the directory it names."""
    if tool.casefold() != "glob":
        return False
    pattern = arguments.get("pattern")
    return not isinstance(pattern, str) or pattern.startswith(("/", "~")) or ".." in pattern or "\\" in pattern


def _is_argv(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in cast(Sequence[object], value))


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
