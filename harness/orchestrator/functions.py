"""Python functions as tools."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from pydantic import ValidationError

from harness.contract.tools import TOOL_NAME_PATTERN, ToolCall, ToolDescriptor
from harness.errors import InvalidArgument
from harness.orchestrator.arguments import BadArguments, arguments_of
from harness.orchestrator.function_results import outcome_of
from harness.orchestrator.function_schema import FunctionSchema
from harness.orchestrator.marks import ToolMark, mark_of
from harness.orchestrator.refusals import RefusalKind
from harness.orchestrator.tool_context import ToolContext
from harness.orchestrator.tool_provider import ToolOutcome, failure
from harness.orchestrator.worker_thread import run_in_thread

logger = logging.getLogger(__name__)


class FunctionTools:
    """A `ToolProvider` of functions: async ones run as they are, others in a thread of their own.

    Raises:
        InvalidArgument: a function that cannot be described to a model, or whose name is no tool name.
    """

    def __init__(self, functions: Iterable[Callable[..., Any]], *, label: str = "functions", prefix: str = "") -> None:
        self.label = label
        self._functions = [_FunctionTool(function, prefix) for function in functions]
        self._by_name = {function.descriptor.name: function for function in self._functions}

    async def list_tools(self) -> Sequence[ToolDescriptor]:
        return [function.descriptor for function in self._functions]

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutcome:
        return await self._by_name[call.tool_name].run(call, context)


def tools_from(owner: object, *, prefix: str = "", label: str | None = None) -> FunctionTools:
    """The public methods of an object as tools, each with the name of its method behind the prefix.

    What it inherits is public too; properties are left alone, so nothing is computed by looking.

    Raises:
        InvalidArgument: it has no public method, or one that cannot be described to a model.
    """
    names = [name for name, _ in inspect.getmembers_static(owner, _is_method) if not name.startswith("_")]
    if not names:
        raise InvalidArgument(f"'{type(owner).__name__}' has no public method: nothing to call")
    methods = [getattr(owner, name) for name in names]
    return FunctionTools(methods, label=label or f"object '{type(owner).__name__}'", prefix=prefix)


class _FunctionTool:
    def __init__(self, function: Callable[..., Any], prefix: str) -> None:
        mark = mark_of(function) or ToolMark()
        own = mark.name or getattr(function, "__name__", "")
        name = prefix + own if own else ""
        if not re.fullmatch(TOOL_NAME_PATTERN, name):
            raise InvalidArgument(
                f"'{name or function!r}' is no tool name (letters, digits, '_' and '-', at most 64): "
                "give it one with @tool(name=...)"
            )
        self._function = function
        self._schema = FunctionSchema(function, name)
        self.descriptor = ToolDescriptor(
            name=name,
            description=self._schema.description,
            input_schema_json=self._schema.input_schema_json,
            output_schema_json=self._schema.output_schema_json,
            read_only=mark.read_only,
            destructive=mark.destructive,
            idempotent=mark.idempotent,
            open_world=mark.open_world,
        )

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutcome:
        """The function's value, or what it raised: type and message, never a stack trace."""
        try:
            bound = self._schema.bind(arguments_of(call), context)
        except (BadArguments, ValidationError) as error:
            text = f"The tool '{call.tool_name}' was not run, its arguments do not fit:\n{_complaints(error)}"
            return failure(text, RefusalKind.INVALID_ARGUMENTS)
        try:
            value = await self._call(bound)
        except (Exception, SystemExit) as error:  # the tool's own failure is data: the model shall see it
            logger.info("tool '%s' raised", call.tool_name, exc_info=True)
            return failure(f"{type(error).__name__}: {error}")
        try:
            return outcome_of(value, is_structured=self._schema.output_schema_json is not None)
        except (TypeError, ValueError) as error:
            return failure(f"The tool '{call.tool_name}' ran, but JSON cannot carry its result: {error}")

    async def _call(self, bound: inspect.BoundArguments) -> Any:
        ready = partial(self._function, *bound.args, **bound.kwargs)
        if _is_async(self._function):
            return await ready()
        value = await run_in_thread(ready)
        # a plain wrapper around an async function
        return await value if inspect.isawaitable(value) else value


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _is_method(member: object) -> bool:
    return inspect.isfunction(member) or isinstance(member, staticmethod | classmethod)


def _complaints(error: BadArguments | ValidationError) -> str:
    """What does not fit, one line each."""
    if isinstance(error, BadArguments):
        return str(error)
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return "\n".join(f"- '{'.'.join(str(part) for part in detail['loc'])}': {detail['msg']}" for detail in details)
