"""The short text of rules and calls: `Bash`, `Bash(git diff *)`, `Edit(src/**)`, `WebFetch(domain:example.org)`,
`lookup(city=Oslo)`.
"""

from __future__ import annotations

import json
import re

from harness.contract.delegation import ArgumentPattern, PolicyRule
from harness.contract.requests import RequestKind
from harness.errors import InvalidArgument
from harness.policy.call import PolicyCall
from harness.policy.shapes import Sort, shape_of

_FORM = re.compile(r"([\w.*?/:-]+)(?:\((.*)\))?", re.DOTALL)
_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def rule_of_text(text: str) -> PolicyRule:
    """A rule from its short form. `Bash(*)` is `Bash`; `git diff:*`, the older spelling, is `git diff *`.

    Raises:
        InvalidArgument: it is no rule.
    """
    tool, inner = _parts(text, "rule")
    if inner is None or inner == "*":
        return PolicyRule(tool=tool)
    shape = shape_of(tool)
    if shape is not None:
        pattern = f"{inner[:-2]} *" if shape.sort == Sort.COMMAND and inner.endswith(":*") else inner
        return PolicyRule(tool=tool, arguments=[ArgumentPattern(name=shape.argument, pattern=pattern)])
    name, pattern = _named(tool, inner)
    return PolicyRule(tool=tool, arguments=[ArgumentPattern(name=name, pattern=pattern)])


def rule_text(rule: PolicyRule) -> str:
    """The short form where there is one; else what the rule has, one after the other, for people."""
    shape = shape_of(rule.tool)
    inner: list[str] = []
    for one in rule.arguments:
        is_main = shape is not None and one.name == shape.argument and len(rule.arguments) == 1
        inner.append(one.pattern if is_main else f"{one.name}={one.pattern}")
    text = f"{rule.tool}({', '.join(inner)})" if inner else rule.tool
    limits = [f"{name} '{value}'" for name, value in (("kind", rule.kind), ("connector", rule.connector)) if value]
    return " of ".join((text, *limits))


def call_of_text(text: str, *, kind: RequestKind | str = RequestKind.APPROVAL) -> PolicyCall:
    """A call from its short form, `Bash(git diff HEAD)`, or from JSON: `{"tool": "Bash", "arguments": {...}}`.

    Raises:
        InvalidArgument: it is neither.
    """
    if text.lstrip().startswith("{"):
        return _call_of_json(text, kind)
    tool, inner = _parts(text, "call")
    if inner is None:
        return PolicyCall(tool, kind=kind)
    shape = shape_of(tool)
    name, value = (shape.argument, inner) if shape is not None else _named(tool, inner)
    return PolicyCall(tool, json.dumps({name: value}), kind=kind)


def call_text(call: PolicyCall) -> str:
    """The call in its short form, for people."""
    main = main_argument(call)
    return call.tool if main is None else f"{call.tool}({main})"


def main_argument(call: PolicyCall) -> str | None:
    """The command, path or address that the call is about; null for a tool of which that is not known."""
    shape = shape_of(call.tool)
    if shape is None:
        return None
    value = (call.arguments or {}).get(shape.argument)
    if value is None:
        return call.arguments_json
    return value if isinstance(value, str) else json.dumps(value)


def _parts(text: str, what: str) -> tuple[str, str | None]:
    found = _FORM.fullmatch(text.strip())
    if found is None or found[2] == "":
        raise InvalidArgument(f"'{text}' is no {what}: write Tool, or Tool(pattern) such as Bash(git diff *)")
    return found[1], found[2]


def _named(tool: str, inner: str) -> tuple[str, str]:
    found = _NAMED.fullmatch(inner)
    if found is None:
        raise InvalidArgument(f"'{tool}({inner})': say which argument is meant: {tool}(name={inner})")
    return found[1], found[2]


def _call_of_json(text: str, kind: RequestKind | str) -> PolicyCall:
    try:
        value = json.loads(text)
        tool, arguments = value["tool"], value.get("arguments", {})
    except (ValueError, KeyError, AttributeError):
        raise InvalidArgument('a call in JSON is {"tool": "Bash", "arguments": {"command": "git diff"}}') from None
    return PolicyCall(
        str(tool),
        arguments if isinstance(arguments, str) else json.dumps(arguments),
        kind=value.get("kind", kind),
        connector=value.get("connector"),
        read_only=value.get("read_only"),
    )
