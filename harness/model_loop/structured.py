"""The structured answer in a model's text (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from harness.contract.value import JsonValue

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)


def structured_output(text: str, schema_json: str) -> tuple[str | None, str | None]:
    """The JSON text that fits the schema, or None and what is wrong. A fence around it is not held against it."""
    candidates = [text.strip(), *(found.strip() for found in _FENCED.findall(text))]
    problem: str | None = None
    for candidate in candidates:
        try:
            value: JsonValue = json.loads(candidate)
        except (ValueError, RecursionError) as error:
            problem = problem or f"the answer is not JSON ({error})"
            continue
        problem = _misfit(value, schema_json)
        if problem is None:
            return candidate, None
    return None, problem


def instruction(schema_json: str) -> str:
    """For providers that cannot be held to a schema."""
    return (
        f"Give your final answer as JSON only, without any other text, valid against this JSON Schema:\n{schema_json}"
    )


def correction(problem: str, schema_json: str) -> str:
    return f"Your last answer cannot be used: {problem}. {instruction(schema_json)}"


def _misfit(value: JsonValue, schema_json: str) -> str | None:
    errors = cast(
        Iterable[ValidationError],
        Draft202012Validator(json.loads(schema_json)).iter_errors(value),  # pyright: ignore[reportUnknownMemberType]
    )
    first = next(iter(errors), None)
    return None if first is None else f"'{first.json_path}': {first.message[:200]}"
