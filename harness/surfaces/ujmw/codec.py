"""Values of the contract <-> plain JSON as UJMW has it, by walking the fields of the models (pure).

Members are camelCase, in any case when read, and a null is the default. An enum is its PascalCase name, or its number
in the order of declaration; read are both, and the contract's own word. What a newer contract has beside the fields we
know keeps its names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import ValidationError

from harness.contract.value import JsonValue, Value
from harness.surfaces.ujmw.names import camel, folded, pascal
from harness.surfaces.ujmw.shape import ALSO_READ, NOT_READ, READ_AS, reshaped
from harness.wire.json_text import invalid_value, write_json

V = TypeVar("V", bound=Value)


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
        fields, members = type(value).model_fields, dict[str, JsonValue]()
        for name, member in native.items():
            if name not in fields:
                members[name] = member
            elif get_origin(fields[name].annotation) is Literal:
                members[camel(name)] = pascal(member)
            else:
                members[camel(name)] = self.written(getattr(value, name), member)
        return reshaped(type(value), members)


def _object(kind: type[Value], value: JsonValue) -> JsonValue:
    """The native members; what is no object stays as it is, and the model says what it should be."""
    if not isinstance(value, Mapping):
        return value
    fields, keeps_others = _fields_of(kind), kind.model_config.get("extra") == "allow"
    native: dict[str, JsonValue] = {}
    for name, member in cast(Mapping[str, JsonValue], value).items():
        field = fields.get(folded(name))
        if field is None:
            if keeps_others:
                native[name] = member
        elif member is not None:
            native[field[0]] = _native(field[1], member)
    return native


@cache
def _fields_of(kind: type[Value]) -> Mapping[str, tuple[str, Any]]:
    """Field and annotation by the folded name."""
    own = {folded(name): name for name in kind.model_fields if name not in NOT_READ.get(kind, ())}
    other = {folded(name): field for name, field in ALSO_READ.get(kind, {}).items()}
    return {
        name: (field, READ_AS.get((kind, field), kind.model_fields[field].annotation))
        for name, field in {**own, **other}.items()
    }


def _native(annotation: Any, value: JsonValue) -> JsonValue:
    found = _plain_kinds(annotation)
    if isinstance(value, list):
        [element] = [get_args(one)[0] for one in found if get_origin(one) in (list, Sequence)] or [Any]
        return [_native(element, one) for one in cast(list[JsonValue], value)]
    if isinstance(value, Mapping):
        members: JsonValue = cast(Mapping[str, JsonValue], value)
        variant = _variant([one for one in found if _is_a(one, Value)], members)
        return members if variant is None else _object(variant, members)
    for one in found:
        if _is_a(one, Enum):
            return _word(list(one), value)
        if get_origin(one) is Literal:
            return next((word for word in get_args(one) if _is_spelled(word, value)), value)
    return value


def _plain_kinds(annotation: Any) -> list[Any]:
    """The members of a union, or the one annotation, without what is annotated to them."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        return [kind for one in get_args(annotation) for kind in _plain_kinds(one)]
    return [annotation]


def _is_a(annotation: Any, kind: type) -> bool:
    return isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, kind)


def _variant(variants: Sequence[type[Value]], value: Mapping[str, JsonValue]) -> type[Value] | None:
    """The one whose discriminator the value has; else the one without a discriminator, made for the unknown."""
    words = {folded(name): member for name, member in value.items()}
    other: type[Value] | None = None
    for variant in variants:
        discriminator = _discriminator_of(variant)
        if discriminator is None:
            other = variant
        elif _is_spelled(discriminator[1], words.get(folded(discriminator[0]))):
            return variant
    return other


@cache
def _discriminator_of(kind: type[Value]) -> tuple[str, str] | None:
    for name, field in kind.model_fields.items():
        if get_origin(field.annotation) is Literal:
            return name, get_args(field.annotation)[0]
    return None


def _word(members: Iterable[Enum], value: JsonValue) -> JsonValue:
    """The contract's word for a member; anything else stays, for a reader of open enums."""
    known = [str(member.value) for member in members]
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(known):
        return known[value]
    return next((word for word in known if _is_spelled(word, value)), value)


def _is_spelled(word: str, value: JsonValue) -> bool:
    return isinstance(value, str) and folded(value) == folded(word)
