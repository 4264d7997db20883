"""Function tools as the contract's (pure). A namespace becomes part of the name, and calls are told with it again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from harness.contract.options import ToolMode
from harness.contract.tools import EMPTY_SCHEMA_JSON, ToolDescriptor
from harness.surfaces.compatible.names import inner_name
from harness.surfaces.compatible.refusals import refused
from harness.surfaces.openai.chat_body import unreadable
from harness.surfaces.openai.responses_body import AllowedTools, FunctionTool, NamedFunction, Tool, ToolChoice


@dataclass(frozen=True, slots=True)
class ToolName:
    """A tool as the client calls it."""

    name: str
    namespace: str | None = None


def inner_tool_name(name: str, namespace: str | None) -> str:
    """What an agent gets: the same for the same tool in every request."""
    return inner_name(name if namespace is None else f"{namespace}__{name}")


def offered_tools(tools: Sequence[Tool]) -> tuple[ToolDescriptor, ...]:
    """Raises:
    InvalidArgument: a tool that cannot be offered, named by its place.
    """
    return tuple(_descriptor(tool, namespace, place) for tool, namespace, place in _functions(tools))


def client_names(tools: Sequence[Tool]) -> Mapping[str, ToolName]:
    """The client's names of its tools, by those that an agent gets, where the two differ."""
    known = {
        inner_tool_name(tool.name, namespace): ToolName(tool.name, namespace)
        for tool, namespace, _ in _functions(tools)
    }
    return {inner: name for inner, name in known.items() if name != ToolName(inner)}


def ignored_of_tools(tools: Sequence[Tool]) -> Iterator[str]:
    """Members of tools that ask for something and reach nobody."""
    for tool, _, _ in _functions(tools):
        if tool.strict:
            yield "tools.strict"
        yield from (f"tools.{name}" for name, value in (tool.model_extra or {}).items() if value)


def tool_choice(choice: ToolChoice | None, tools: Sequence[Tool]) -> tuple[ToolMode | None, list[str] | None]:
    """Null twice means: as the model likes."""
    match choice:
        case None | "auto":
            return None, None
        case "none":
            return (ToolMode.NONE if tools else None), None
        case "required":
            return ToolMode.ANY, None
        case AllowedTools(mode=mode, tools=allowed):
            return (ToolMode.ANY if mode == "required" else None), [_inner(one) for one in allowed]
        case NamedFunction():
            return ToolMode.ONE, [_inner(choice)]


def _inner(named: NamedFunction) -> str:
    return inner_tool_name(named.name, named.namespace)


def _functions(tools: Sequence[Tool]) -> Iterator[tuple[FunctionTool, str | None, str]]:
    for number, tool in enumerate(tools):
        if isinstance(tool, FunctionTool):
            yield tool, None, f"tools.{number}"
        else:
            yield from ((one, tool.name, f"tools.{number}.tools.{inner}") for inner, one in enumerate(tool.tools))


def _descriptor(tool: FunctionTool, namespace: str | None, place: str) -> ToolDescriptor:
    try:
        return ToolDescriptor(
            name=inner_tool_name(tool.name, namespace),
            description=tool.description or "",
            input_schema_json=json.dumps(tool.parameters, ensure_ascii=False) if tool.parameters else EMPTY_SCHEMA_JSON,
        )
    except ValidationError as error:
        wrong = unreadable(error)
        param = f"{place}.{wrong.detail['param']}"
        raise refused(f"'{param}' cannot be used: {wrong.message}", reason="invalid_value", param=param) from None
