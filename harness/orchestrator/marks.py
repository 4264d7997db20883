"""`@tool`: what a function says about itself. Light on purpose: a tools file is imported before anything is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

_ATTRIBUTE = "__harness_tool__"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ToolMark:
    """The hints of a `ToolDescriptor`; unset means unknown, and unknown is treated as not read-only."""

    name: str | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
) -> Callable[[F], F]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
) -> Callable[..., Any]:
    """Marks a function as a tool, as `@tool` or `@tool(read_only=True)`; the function itself stays what it is.

    A peer may run read-only tools in parallel; those that are not marked so may be run one by one.
    """
    mark = ToolMark(name, read_only, destructive, idempotent, open_world)

    def marked(target: F) -> F:
        setattr(target, _ATTRIBUTE, mark)
        return target

    return marked if function is None else marked(function)


def mark_of(function: Callable[..., Any]) -> ToolMark | None:
    """The mark of a function, null when it has none."""
    mark = getattr(function, _ATTRIBUTE, None)
    return mark if isinstance(mark, ToolMark) else None
