"""Judges a call's arguments against the tool's JSON Schema before anything runs (pure)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn, cast

from harness.contract.tools import ToolCall, ToolDescriptor
from harness.errors import InvalidArgument

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MAX_COMPLAINTS = 5
MAX_COMPLAINT_CHARS = 300


class BadArguments(ValueError):
    """The arguments do not fit; the text tells the model what is missing and what is allowed."""


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments as JSON values; an empty text means none.

    Raises:
        BadArguments: not JSON, or not an object.
    """
    try:
        arguments = json.loads(call.arguments_json or "{}", parse_constant=_no_constant)
    except ValueError as error:
        raise BadArguments(f"- the arguments are not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise BadArguments("- the arguments must be one JSON object")
    return cast(dict[str, Any], arguments)


class ArgumentCheck:
    """The validator of one tool, built once (JSON Schema 2020-12).

    Raises:
        InvalidArgument: the schema itself is broken.
    """

    def __init__(self, tool: ToolDescriptor) -> None:
        # imported here: a host without tools never pays for it
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError
        from referencing import Registry

        try:
            self._schema = json.loads(tool.input_schema_json)
            Draft202012Validator.check_schema(self._schema)
        except (ValueError, SchemaError) as error:
            reason = error.message if isinstance(error, SchemaError) else str(error)
            raise InvalidArgument(f"the input schema of tool '{tool.name}' is broken: {reason}") from error
        # an empty registry: a '$ref' to somewhere else is never fetched
        self._validator = Draft202012Validator(
            self._schema,
            format_checker=Draft202012Validator.FORMAT_CHECKER,
            registry=cast(Any, Registry)(),
        )

    def check(self, arguments: dict[str, Any]) -> None:
        """Raises:
        BadArguments: with one line per complaint, and what the tool takes.
        """
        from referencing.exceptions import Unresolvable

        try:
            complaints = [_complaint(error) for error in cast(Any, self._validator).iter_errors(arguments)]
        except Unresolvable as error:
            raise BadArguments(f"- the tool's schema refers to '{error.ref}', which is not known here") from error
        if complaints:
            shown = [f"- {text[:MAX_COMPLAINT_CHARS]}" for text in complaints[:MAX_COMPLAINTS]]
            if len(complaints) > MAX_COMPLAINTS:
                shown.append(f"- and {len(complaints) - MAX_COMPLAINTS} more")
            raise BadArguments("\n".join([*shown, f"It takes: {_parameters(self._schema)}"]))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _complaint(error: ValidationError) -> str:
    from jsonschema import exceptions

    # of the branches of an anyOf the one that fits best says most
    leaf = cast("ValidationError", cast(Any, exceptions).best_match([error]))
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in leaf.absolute_path).lstrip(".")
    return f"'{path}': {leaf.message}" if path else leaf.message


def _parameters(schema: dict[str, Any]) -> str:
    """A short list for a model that has to try again."""
    properties = cast(dict[str, Any], schema.get("properties") or {})
    required = cast(list[str], schema.get("required") or [])
    described = [f"'{name}' ({_kind(property_, name in required)})" for name, property_ in properties.items()]
    return ", ".join(described) or "no arguments"


def _kind(schema: Any, required: bool) -> str:
    members = cast(dict[str, Any], schema) if isinstance(schema, dict) else {}
    words = [str(members["type"])] if isinstance(members.get("type"), str) else []
    if isinstance(members.get("enum"), list):
        words.append("one of " + json.dumps(members["enum"])[:200])
    words.append("required" if required else "optional")
    return ", ".join(words)
