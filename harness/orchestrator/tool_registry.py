"""All tools of a conversation: one sorted list without collisions, and one place where a call is run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from harness.contract.tools import ToolCall, ToolDescriptor
from harness.errors import InvalidArgument
from harness.orchestrator.arguments import ArgumentCheck, BadArguments, arguments_of
from harness.orchestrator.functions import FunctionTools
from harness.orchestrator.refusals import RefusalKind
from harness.orchestrator.tool_provider import ToolOutcome, ToolProvider, failure

logger = logging.getLogger(__name__)

ToolSource: TypeAlias = Callable[..., Any] | ToolProvider
"""A function, or a provider of many tools."""


@dataclass(frozen=True, slots=True)
class _Entry:
    descriptor: ToolDescriptor
    provider: ToolProvider
    check: ArgumentCheck


class ToolRegistry:
    """Frozen once made; `await ToolRegistry.of([...])` makes one."""

    def __init__(self, entries: Mapping[str, _Entry]) -> None:
        self._entries = dict(sorted(entries.items()))

    @classmethod
    async def of(cls, tools: Iterable[ToolSource] | ToolRegistry) -> ToolRegistry:
        """A registry of these functions and providers; one that is a registry already stays what it is.

        Raises:
            InvalidArgument: a name that two sources use, a broken schema, something that is no tool.
        """
        if isinstance(tools, ToolRegistry):
            return tools
        entries: dict[str, _Entry] = {}
        for provider in _providers(tools):
            for descriptor in await provider.list_tools():
                earlier = entries.get(descriptor.name)
                if earlier is not None:
                    by = f"by {earlier.provider.label} and by {provider.label}"
                    raise InvalidArgument(f"tool '{descriptor.name}' is declared twice: {by}")
                entries[descriptor.name] = _Entry(descriptor, provider, ArgumentCheck(descriptor))
        return cls(entries)

    @property
    def descriptors(self) -> list[ToolDescriptor]:
        """Sorted by name."""
        return [entry.descriptor for entry in self._entries.values()]

    def is_read_only(self, tool_name: str | None) -> bool:
        """Whether calls of this tool may run beside others; an unknown one never runs, so it need not wait."""
        entry = self._entries.get(tool_name or "")
        return entry is None or entry.descriptor.read_only is True

    async def run(self, call: ToolCall) -> ToolOutcome:
        """Validates the arguments and runs the tool; whatever fails is an error result. Only cancellation leaves."""
        entry = self._entries.get(call.tool_name)
        if entry is None:
            known = ", ".join(f"'{name}'" for name in self._entries) or "none"
            return failure(f"There is no tool '{call.tool_name}'. Known tools: {known}.")
        try:
            entry.check.check(arguments_of(call))
        except BadArguments as error:
            text = f"The tool '{call.tool_name}' was not run, its arguments do not fit:\n{error}"
            return failure(text, RefusalKind.INVALID_ARGUMENTS)
        try:
            return await entry.provider.run(call)
        except Exception as error:  # the edge of a provider: the model shall see it, the loop goes on
            logger.exception("tool '%s' of %s failed", call.tool_name, entry.provider.label)
            return failure(f"{type(error).__name__}: {error}")


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
