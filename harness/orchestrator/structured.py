"""An answer of a given type: its schema, how to ask for it in words, and how to read it (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError

from harness.errors import InvalidArgument
from harness.orchestrator.function_results import json_text

_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.DOTALL)


class Mismatch(ValueError):
    """The answer does not fit; the text says where."""


class OutputShape:
    """A pydantic model, dataclass or any other type that pydantic can describe.

    A type that is no JSON object travels in one, as `{"value": ...}`, because providers ask for objects.

    Raises:
        InvalidArgument: a type that cannot be described.
    """

    def __init__(self, output_type: Any) -> None:
        name = getattr(output_type, "__name__", str(output_type))
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(output_type)
            schema = adapter.json_schema()
            self._is_wrapped = _root_type(schema) != "object"
            if self._is_wrapped:
                wrapper: type[BaseModel] = create_model(
                    "Output", __config__=ConfigDict(extra="forbid"), value=(output_type, ...)
                )
                adapter = TypeAdapter(wrapper)
                schema = adapter.json_schema()
        except PydanticUserError as error:  # the root of what pydantic says about a type
            raise InvalidArgument(f"'output_type' '{name}' cannot be described: {error}") from error
        self._adapter = adapter
        self.schema_json = json_text(schema)

    def read(self, structured_output_json: str | None, text: str) -> Any:
        """The object, from the structured output where there is one, else from the JSON in the text.

        Raises:
            Mismatch: there is no JSON, or it does not fit.
        """
        problem: Mismatch | None = None
        for candidate in _candidates(structured_output_json, text):
            try:
                value = self._adapter.validate_json(candidate)
            except ValidationError as error:
                problem = problem or Mismatch(_complaints(error))
            else:
                return value.value if self._is_wrapped else value
        raise problem or Mismatch("- the answer has no JSON")

    @property
    def instruction(self) -> str:
        """For a model that cannot be held to a schema otherwise."""
        return (
            "Your final answer must be one JSON value that matches this JSON Schema, "
            f"without any other text:\n{self.schema_json}"
        )

    def repair(self, problem: str) -> str:
        return f"Your answer does not match the JSON Schema:\n{problem}\n\nAnswer again. {self.instruction}"


def _root_type(schema: dict[str, Any]) -> str | None:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _root_type(schema.get("$defs", {}).get(reference.rpartition("/")[2], {}))
    return schema.get("type")


def _candidates(structured_output_json: str | None, text: str) -> Iterator[str]:
    """Where the JSON may be: in its own place, else the whole text, a fenced block, or the first value in prose."""
    if structured_output_json is not None:
        yield structured_output_json
        return
    if not text.strip():
        return
    yield text
    yield from (match.group(1) for match in _FENCE.finditer(text))
    start = re.search(r"[{\[]", text)
    if start is not None:
        try:
            _, end = json.JSONDecoder().raw_decode(text, start.start())
        except ValueError:
            return
        yield text[start.start() : end]


def _complaints(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)[:5]
    return "\n".join(
        f"- {'.'.join(str(part) for part in detail['loc']) or 'the answer'}: {detail['msg']}" for detail in details
    )
