"""A function's parameters as a JSON Schema, and a call's arguments as the values the function expects (pure)."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import partial
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from docstring_parser import ParseError, parse
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, to_jsonable_python

from harness.errors import InvalidArgument
from harness.orchestrator.function_results import BLOCKS, json_text
from harness.orchestrator.tool_context import ToolContext
from harness.orchestrator.tool_provider import ToolOutcome

_UNDESCRIBABLE = (PydanticSchemaGenerationError, PydanticUserError, PydanticInvalidForJsonSchema)
_UNNAMED = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class _Untitled(GenerateJsonSchema):
    """Without the titles that only repeat the names: the model pays for every word."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def generate(self, schema: CoreSchema, mode: Any = "validation") -> dict[str, Any]:
        described = super().generate(schema, mode)
        described.pop("title", None)
        return described


class FunctionSchema:
    """What a function wants, read once from its signature, annotations and docstring.

    Raises:
        InvalidArgument: a signature that cannot be described to a model; names the function and the parameter.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._name = name
        try:
            self._signature = inspect.signature(function)
        except ValueError as error:
            raise InvalidArgument(f"tool '{name}': Python does not know its signature") from error
        self.description, described = _documentation(function)
        annotations = self._annotations(function)
        # fields are numbered and named by alias, because a parameter may have a name that pydantic keeps for itself
        self._contexts = [name for name, annotation in annotations.items() if _is_context(annotation)]
        names = (name for name in self._signature.parameters if name not in self._contexts)
        self._fields = {f"p{number}": name for number, name in enumerate(names)}
        fields: dict[str, Any] = {
            field: self._field(self._signature.parameters[name], annotations.get(name, Any), described.get(name))
            for field, name in self._fields.items()
        }
        try:
            self._model: type[BaseModel] = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
            self.input_schema_json = json_text(self._model.model_json_schema(schema_generator=_Untitled))
        except _UNDESCRIBABLE as error:
            raise self._undescribable(annotations, error) from error
        self.output_schema_json = _output_schema_json(annotations.get("return"))

    def bind(self, arguments: Mapping[str, Any], context: ToolContext) -> inspect.BoundArguments:
        """The arguments as the function expects them; what the call leaves out keeps the function's default.

        Raises:
            pydantic.ValidationError: they do not fit.
        """
        values = self._model.model_validate(arguments)
        given = {
            name: getattr(values, field)
            for field, name in self._fields.items()
            if field in values.model_fields_set or self._signature.parameters[name].default is inspect.Parameter.empty
        }
        # in the order of the signature: positional-only parameters are bound by it
        bound = {**given, **dict.fromkeys(self._contexts, context)}
        ordered = {name: bound[name] for name in self._signature.parameters if name in bound}
        return inspect.BoundArguments(self._signature, cast(Any, ordered))

    def _annotations(self, function: Callable[..., Any]) -> dict[str, Any]:
        target = function
        while isinstance(target, partial):
            target = target.func
        if not inspect.isroutine(target):
            target = type(target).__call__
        try:
            return get_type_hints(target, include_extras=True)
        except Exception as error:  # whatever evaluating an annotation of the caller's raises
            raise InvalidArgument(f"tool '{self._name}': its annotations cannot be read: {error}") from error

    def _field(self, parameter: inspect.Parameter, annotation: Any, description: str | None) -> tuple[Any, Any]:
        stars = _UNNAMED.get(parameter.kind)
        if stars is not None:
            raise InvalidArgument(
                f"tool '{self._name}': a model cannot give '{stars}{parameter.name}'; name each parameter"
            )
        own: dict[str, Any] = {"alias": parameter.name}
        text = _own_description(annotation) or description
        if text is not None:
            own["description"] = text
        if parameter.default is not inspect.Parameter.empty:
            own.update(_default(parameter.default))
            if parameter.default is None:
                annotation = _optional(annotation)
        return annotation, Field(**own)

    def _undescribable(self, annotations: Mapping[str, Any], error: Exception) -> InvalidArgument:
        for name in self._fields.values():
            try:
                TypeAdapter(annotations.get(name, Any)).json_schema()
            except _UNDESCRIBABLE as culprit:
                reason = str(culprit).splitlines()[0]
                return InvalidArgument(f"tool '{self._name}': parameter '{name}' cannot be described: {reason}")
        return InvalidArgument(f"tool '{self._name}' cannot be described: {str(error).splitlines()[0]}")


def _is_context(annotation: Any) -> bool:
    """`ToolContext`, also in `ToolContext | None`."""
    return annotation is ToolContext or ToolContext in get_args(annotation)


def _output_schema_json(annotation: Any) -> str | None:
    """The schema of what the function returns, where that is a class whose values are JSON objects."""
    if not isinstance(annotation, type) or issubclass(annotation, (ToolOutcome, *BLOCKS)):
        return None
    class_ = cast("type[object]", annotation)
    is_typed_dict = hasattr(class_, "__total__") and hasattr(class_, "__required_keys__")
    if not (is_typed_dict or is_dataclass(class_) or issubclass(class_, BaseModel)):
        return None
    try:
        schema = TypeAdapter(cast(Any, annotation)).json_schema(mode="serialization", schema_generator=_Untitled)
    except _UNDESCRIBABLE:
        return None  # then its results are text alone
    return json_text(schema) if schema.get("type") == "object" else None


def _documentation(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The description, and one per parameter, from a Google, NumPy, reST or plain docstring."""
    text = inspect.getdoc(function) or ""
    try:
        parsed = parse(text)
    except ParseError:
        return text, {}
    parts = [parsed.short_description, parsed.long_description]
    if parsed.returns is not None and parsed.returns.description:
        parts.append(f"Returns: {parsed.returns.description}")
    parameters = {parameter.arg_name: parameter.description for parameter in parsed.params if parameter.description}
    return "\n\n".join(part for part in parts if part), parameters


def _own_description(annotation: Any) -> str | None:
    """`Annotated[str, Field(description="...")]` or `Annotated[str, "..."]`."""
    if get_origin(annotation) is not Annotated:
        return None
    texts = (extra.description if isinstance(extra, FieldInfo) else extra for extra in get_args(annotation)[1:])
    return next((text for text in texts if isinstance(text, str)), None)


def _default(value: Any) -> dict[str, Any]:
    """As a visible default where JSON can carry it, else as one that the schema does not show."""
    try:
        json.dumps(to_jsonable_python(value), allow_nan=False)
    except ValueError:
        return {"default_factory": lambda: value}
    return {"default": value}


def _optional(annotation: Any) -> Any:
    """`x: str = None` is meant as optional."""
    try:
        return annotation | None
    except TypeError:
        return annotation
