"""Values of the contract <-> plain JSON as UJMW has it, by walking the fields of the models (pure).

Members are camelCase, in any case when read, and a null is the default. An enum is its PascalCase name, or its number
in the order of declaration; read are both, and the contract's own word. What a newer contract has beside the fields we
know keeps its names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin

from pydantic import ValidationError

from harness.contract.value import JsonValue, Value
from harness.surfaces.ujmw.names import camel, folded, pascal
from harness.surfaces.ujmw.shape import ALSO_READ, NOT_READ, READ_AS, reshaped
from harness.wire.json_text import invalid_value, write_json

V = TypeVar("V", bound=Value)
Reader: TypeAlias = Callable[[JsonValue], JsonValue]


def encode(value: JsonValue, *, enums_as_integers: bool = False) -> JsonValue:
    """What an operation gives: a value, a list of values, a text or a number."""
    if isinstance(value, list | tuple):
        return [encode(one, enums_as_integers=enums_as_integers) for one in cast(Sequence[JsonValue], value)]
    if not isinstance(value, Value):
        return value
    # the native form decides what is written at all; names and enums are ours
    return _Writer(enums_as_integers).written(value, json.loads(write_json(value)))


def decode(kind: type[V], members: Mapping[str, JsonValue], what: str = "the body") -> V:
    """The value that the members stand for.

    Raises:
        InvalidArgument: they stand for none; the message names the member, as the client writes it.
    """
    try:
        return kind.model_validate(_object(kind, members))
    except ValidationError as error:
        raise invalid_value(error, what, spelled=camel) from None


class _Writer:
    """Walks a value and its native form side by side."""

    def __init__(self, enums_as_integers: bool) -> None:
        self._as_integers = enums_as_integers

    def written(self, value: JsonValue, native: JsonValue) -> JsonValue:
        if isinstance(value, Value):
            return self._members(value, native)
        if isinstance(value, Enum):
            return list[Enum](type(value)).index(value) if self._as_integers else pascal(value.value)
        if isinstance(value, list | tuple):
            pairs = zip(cast(Sequence[JsonValue], value), native, strict=True)
            return [self.written(one, its_native) for one, its_native in pairs]
        return native

    def _members(self, value: Value, native: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        spellings, members = _spellings(type(value)), dict[str, JsonValue]()
        for name, member in native.items():
            if name not in spellings:
                members[name] = member
            elif name == _discriminator_name(type(value)):
                members[spellings[name]] = pascal(member)
            else:
                members[spellings[name]] = self.written(getattr(value, name), member)
        return reshaped(type(value), members)


@cache
def _spellings(kind: type[Value]) -> Mapping[str, str]:
    return {name: camel(name) for name in kind.model_fields}


def _object(kind: type[Value], value: JsonValue) -> JsonValue:
    """The native members; what is no object stays as it is, and the model says what it should be."""
    if not isinstance(value, dict):
        return value
    fields, keeps_others = _fields_of(kind), kind.model_config.get("extra") == "allow"
    native: dict[str, JsonValue] = {}
    for name, member in cast(dict[str, JsonValue], value).items():
        field = fields.get(folded(name))
        if field is None:
            if keeps_others:
                native[name] = member
        elif member is not None:
            native[field.name] = field.read(member)
    return native


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    read: Reader


@cache
def _fields_of(kind: type[Value]) -> Mapping[str, _Field]:
    """By the folded name."""
    own = {folded(name): name for name in kind.model_fields if name not in NOT_READ.get(kind, ())}
    other = {folded(name): field for name, field in ALSO_READ.get(kind, {}).items()}
    return {
        name: _Field(field, _reader(READ_AS.get((kind, field), kind.model_fields[field].annotation)))
        for name, field in {**own, **other}.items()
    }


def _reader(annotation: Any) -> Reader:
    """What makes a member's native form of what stands for it here."""
    kinds = _plain_kinds(annotation)
    elements = [_reader(get_args(kind)[0]) for kind in kinds if get_origin(kind) in (list, Sequence)]
    read_object = _object_reader([kind for kind in kinds if _is_a(kind, Value)])
    numbered = [str(member.value) for kind in kinds if _is_a(kind, Enum) for member in kind]
    discriminators = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    words = {folded(word): word for word in (*numbered, *discriminators)}

    def read(value: JsonValue) -> JsonValue:
        match value:
            case list() if elements:
                return [elements[0](one) for one in cast(list[JsonValue], value)]
            case dict():
                return read_object(cast(JsonValue, value))
            case str() if words:
                return words.get(folded(value), value)
            case bool():
                return value
            case int() if 0 <= value < len(numbered):
                return numbered[value]
            case _:
                return value

    return read


def _object_reader(variants: Sequence[type[Value]]) -> Reader:
    """By the discriminator; what has an unknown one is for the variant without."""
    by_word = {folded(word): kind for kind in variants if (word := _discriminator(kind)) is not None}
    others = variants if len(variants) == 1 else [kind for kind in variants if _discriminator(kind) is None]
    names = {folded(name) for kind in by_word.values() if (name := _discriminator_name(kind)) is not None}

    def read(value: JsonValue) -> JsonValue:
        said = [member for name, member in value.items() if folded(name) in names and isinstance(member, str)]
        kind = by_word.get(folded(said[-1])) if said else None
        kind = kind or next(iter(others), None)
        return value if kind is None else _object(kind, value)

    return read


def _plain_kinds(annotation: Any) -> list[Any]:
    """The members of a union, or the one annotation, without what is annotated to them."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        return [kind for one in get_args(annotation) for kind in _plain_kinds(one)]
    return [annotation]


def _is_a(annotation: Any, kind: type) -> bool:
    return isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, kind)


@cache
def _discriminator_name(kind: type[Value]) -> str | None:
    fields = kind.model_fields.items()
    return next((name for name, field in fields if get_origin(field.annotation) is Literal), None)


def _discriminator(kind: type[Value]) -> str | None:
    name = _discriminator_name(kind)
    return None if name is None else get_args(kind.model_fields[name].annotation)[0]
