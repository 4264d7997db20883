"""All tools of a conversation: one sorted list without collisions, and one place where a call is run."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from harness.contract.tools import ToolCall, ToolDescriptor
from harness.errors import InvalidArgument
from harness.orchestrator.arguments import ArgumentCheck, BadArguments, arguments_of
from harness.orchestrator.functions import FunctionTools
from harness.orchestrator.refusals import RefusalKind
from harness.orchestrator.tool_context import ToolContext
from harness.orchestrator.tool_provider import ToolOutcome, ToolProvider, failure

logger = logging.getLogger(__name__)

ToolSource: TypeAlias = Callable[..., Any] | ToolProvider
"""A function, or a provider of many tools."""

RunCall: TypeAlias = Callable[[ToolCall], Awaitable[ToolOutcome]]
Around: TypeAlias = Callable[[ToolCall, RunCall], Awaitable[ToolOutcome]]
"""A hook around calls: it sees a call, runs the rest (`await run(call)`) and gives the result, its own or another."""

Gate: TypeAlias = Callable[[ToolCall], Awaitable[ToolCall | ToolOutcome]]
"""The policy's place: it gives the call that may run, with other arguments if it likes, or an outcome instead."""


@dataclass(frozen=True, slots=True)
class _Entry:
    descriptor: ToolDescriptor
    provider: ToolProvider
    check: ArgumentCheck


class ToolRegistry:
    """Frozen once made; `await ToolRegistry.of([...])` makes one."""

    def __init__(self, entries: Mapping[str, _Entry], hooks: Iterable[Around] = ()) -> None:
        self._entries = dict(sorted(entries.items()))
        self._hooks = tuple(hooks)

    @classmethod
    async def of(cls, tools: Iterable[ToolSource] | ToolRegistry) -> ToolRegistry:
        """A registry of these functions and providers; one that is a registry already stays what it is.

        Raises:
            InvalidArgument: a name that two sources use, a broken schema, something that is no tool.
        """
        if isinstance(tools, ToolRegistry):
            return tools
        return await cls({}).extended(tools)

    async def extended(self, tools: Iterable[ToolSource]) -> ToolRegistry:
        """A registry with these as well.

        Raises:
            InvalidArgument: see `of`.
        """
        entries = dict(self._entries)
        for provider in _providers(tools):
            for descriptor in await provider.list_tools():
                earlier = entries.get(descriptor.name)
                if earlier is not None:
                    by = f"by {earlier.provider.label} and by {provider.label}"
                    raise InvalidArgument(f"tool '{descriptor.name}' is declared twice: {by}; give one a prefix")
                entries[descriptor.name] = _Entry(descriptor, provider, ArgumentCheck(descriptor))
        return ToolRegistry(entries, self._hooks)

    @property
    def descriptors(self) -> list[ToolDescriptor]:
        """Sorted by name."""
        return [entry.descriptor for entry in self._entries.values()]

    def is_read_only(self, tool_name: str | None) -> bool:
        """Whether calls of this tool may run beside others; an unknown one never runs, so it need not wait."""
        entry = self._entries.get(tool_name or "")
        return entry is None or entry.descriptor.read_only is True

    def around(self, *hooks: Around) -> ToolRegistry:
        """A registry with hooks around every call, the first one outermost.

        A hook may replace the call and the result. The policy judges the call that would really run, so what a hook
        makes of a call needs the same leave as if the model had asked for it.
        """
        return ToolRegistry(self._entries, (*self._hooks, *hooks))

    async def run(self, call: ToolCall, *, context: ToolContext | None = None, gate: Gate | None = None) -> ToolOutcome:
        """Validates the arguments, asks the gate and runs the tool; whatever fails is an error result.

        Only cancellation leaves.
        """
        context = context or ToolContext(call.call_id, call.tool_name)
        run: RunCall = partial(self._run, context=context, gate=gate)
        for hook in reversed(self._hooks):
            run = partial(_hooked, hook, run)
        context.begin()
        try:
            return await run(call)
        except Exception as error:  # the edge of the hooks: the model shall see it, the loop goes on
            logger.exception("a hook around tool '%s' failed", call.tool_name)
            return failure(f"{type(error).__name__}: {error}")
        finally:
            context.end()

    async def _run(self, call: ToolCall, *, context: ToolContext, gate: Gate | None) -> ToolOutcome:
        entry = self._entries.get(call.tool_name)
        if entry is None:
            known = ", ".join(f"'{name}'" for name in self._entries) or "none"
            return failure(f"There is no tool '{call.tool_name}'. Known tools: {known}.")
        wrong = _misfit(entry, call)
        if wrong is None and gate is not None:
            allowed = await gate(call)
            if isinstance(allowed, ToolOutcome):
                return allowed
            call = allowed.model_copy(update={"tool_name": call.tool_name})
            wrong = _misfit(entry, call)
        if wrong is not None:
            return wrong
        try:
            return await entry.provider.run(call, context)
        except Exception as error:  # the edge of a provider: the model shall see it, the loop goes on
            logger.exception("tool '%s' of %s failed", call.tool_name, entry.provider.label)
            return failure(f"{type(error).__name__}: {error}")


def _misfit(entry: _Entry, call: ToolCall) -> ToolOutcome | None:
    try:
        entry.check.check(arguments_of(call))
    except BadArguments as error:
        text = f"The tool '{call.tool_name}' was not run, its arguments do not fit:\n{error}"
        return failure(text, RefusalKind.INVALID_ARGUMENTS)
    return None


async def _hooked(hook: Around, run: RunCall, call: ToolCall) -> ToolOutcome:
    return await hook(call, run)


def _providers(tools: Iterable[ToolSource]) -> list[ToolProvider]:
    providers: list[ToolProvider] = []
    for source in tools:
        if isinstance(source, ToolProvider):
            providers.append(source)
        elif callable(source):
            providers.append(FunctionTools([source], label=f"function '{getattr(source, '__name__', source)}'"))
        else:
            raise InvalidArgument(f"'{source!r}' is no tool: give a function or a tool provider")
    return providers
