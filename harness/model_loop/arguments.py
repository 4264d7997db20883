"""Judges a call before anybody runs it, and says what is wrong so that the model can mend it (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing.exceptions import Unresolvable

from harness.contract.tools import ToolDescriptor
from harness.contract.value import JsonValue

MAX_PROBLEMS = 4
MAX_LISTED = 20


class ArgumentCheck:
    """The tools on offer, each with its validator made once."""

    def __init__(self, tools: Iterable[ToolDescriptor]) -> None:
        self._schemas = {tool.name: _schema(tool) for tool in tools}
        self._validators: dict[str, Draft202012Validator | None] = {}

    def problem(self, tool_name: str, arguments_json: str) -> tuple[str, str] | None:
        """Code and short actionable text for the model; None when the call may run."""
        if tool_name not in self._schemas:
            known = ", ".join(f"'{name}'" for name in list(self._schemas)[:MAX_LISTED]) or "none"
            return "unknown_tool", f"unknown_tool: there is no tool '{tool_name}'. Tools on offer: {known}."
        try:
            arguments: object = json.loads(arguments_json)
        except (ValueError, RecursionError) as error:
            return "invalid_arguments", self._text(tool_name, [f"the arguments are not JSON ({error})"])
        if not isinstance(arguments, dict):
            return "invalid_arguments", self._text(tool_name, ["the arguments must be a JSON object"])
        problems = self._problems(tool_name, cast(dict[str, JsonValue], arguments))
        return ("invalid_arguments", self._text(tool_name, problems)) if problems else None

    def _problems(self, tool_name: str, arguments: Mapping[str, JsonValue]) -> list[str]:
        if tool_name not in self._validators:
            self._validators[tool_name] = _validator(self._schemas[tool_name])
        validator = self._validators[tool_name]
        if validator is None:
            return []
        try:
            # jsonschema has no types of its own
            errors = cast(Iterable[ValidationError], validator.iter_errors(arguments))  # pyright: ignore[reportUnknownMemberType]
            found = sorted(errors, key=lambda error: str(error.json_path))
        except Unresolvable:  # a schema that points elsewhere is the provider's or the host's affair
            return []
        return [_sentence(error) for error in found[:MAX_PROBLEMS]]

    def _text(self, tool_name: str, problems: Sequence[str]) -> str:
        schema = self._schemas[tool_name]
        properties = schema.get("properties")
        allowed = (
            ", ".join(f"'{name}'" for name in list(cast(dict[str, Any], properties))[:MAX_LISTED])
            if properties
            else "none"
        )
        required = ", ".join(f"'{name}'" for name in cast(list[str], schema.get("required") or [])) or "none"
        return (
            f"invalid_arguments: '{tool_name}' was not run: {'; '.join(problems)}. "
            f"Required: {required}; allowed: {allowed}. "
            "Call it again with corrected arguments; do not repeat empty ones."
        )


def _schema(tool: ToolDescriptor) -> dict[str, JsonValue]:
    schema: object = json.loads(tool.input_schema_json)
    return cast(dict[str, JsonValue], schema) if isinstance(schema, dict) else {}


def _validator(schema: Mapping[str, JsonValue]) -> Draft202012Validator | None:
    """None for a schema that is none: then the provider's own check has to do."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return None
    return Draft202012Validator(schema)


def _sentence(error: ValidationError) -> str:
    place = str(error.json_path).removeprefix("$").removeprefix(".")
    text = error.message if len(error.message) <= 200 else f"{error.message[:200]}..."
    return f"'{place}': {text}" if place else text
