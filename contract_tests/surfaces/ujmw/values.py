"""Any value of the contract, drawn by walking the fields of its model."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from harness import contract
from harness.contract import UnknownBlock, UnknownItem, Value
from harness.surfaces.operations import CONTRACT_OPERATIONS

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
RAW_PREFIX = "x-"
KINDS: list[type[Value]] = [
    kind
    for name in contract.__all__
    if isinstance(kind := getattr(contract, name), type) and issubclass(kind, Value) and kind is not Value
] + [one.takes for one in CONTRACT_OPERATIONS]
_INT64 = st.integers(1, 2**63 - 1)
_TOOL_NAME = st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True)
_RAW = st.dictionaries(TEXT.map(RAW_PREFIX.__add__), st.recursive(TEXT | _INT64, st.lists, max_leaves=3), max_size=2)


def values_of(kind: type[Value]) -> SearchStrategy[Value]:
    required: dict[str, SearchStrategy[Any]] = {}
    optional: dict[str, SearchStrategy[Any]] = {}
    for name, field in kind.model_fields.items():
        drawn = _drawn(field.annotation)
        if any(getattr(one, "pattern", None) for one in field.metadata):
            drawn = _TOOL_NAME
        if name in ("kind", "type") and kind in (UnknownItem, UnknownBlock):
            drawn = TEXT.map("unheard-of ".__add__)
        (required if field.is_required() else optional)[name] = drawn
    drawn = st.fixed_dictionaries(required, optional=optional)
    if kind in (UnknownItem, UnknownBlock):
        drawn = st.tuples(drawn, _RAW).map(lambda parts: {**parts[1], **parts[0]})
    return drawn.map(kind.model_validate)


def _drawn(annotation: Any) -> SearchStrategy[Any]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _drawn(arguments[0])
    if origin in (Union, UnionType):
        enums = [one for one in arguments if isinstance(one, type) and issubclass(one, Enum)]
        others = [one for one in arguments if not enums or one is not str]
        texts = [TEXT.map("unheard-of ".__add__)] if enums and str in arguments else []
        return st.one_of(*map(_drawn, others), *texts)
    if origin in (list, Sequence):
        return st.lists(_drawn(arguments[0]), max_size=2)
    if origin is Literal:
        return st.just(arguments[0])
    if annotation is type(None):
        return st.none()
    if issubclass(annotation, Enum):
        return st.sampled_from(list(annotation))
    if issubclass(annotation, Value):
        return values_of(annotation)
    plain = {str: TEXT, bool: st.booleans(), int: _INT64, float: st.floats(0.01, 1e9)}
    return plain[annotation]
