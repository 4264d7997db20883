"""The advisor that the configuration names, as a tool of a run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from harness.cli.configuration import AdvisorChoice
from harness.orchestrator.tool_provider import ToolProvider
from harness.registry import Registry
from harness.settings import Price, Settings


@asynccontextmanager
async def open_advisor(
    choice: AdvisorChoice | None, registry: Registry, prices: Sequence[Price] = ()
) -> AsyncGenerator[list[ToolProvider]]:
    """None without a configured one; it works on this machine, wherever the run's peer does.

    Raises:
        InvalidArgument: no such connector.
    """
    if choice is None:
        yield []
        return
    from harness.local import LocalHarness
    from harness.orchestrator.advisor import MAX_CALLS, AdvisorTool

    registry.resolve(choice.options)
    async with LocalHarness(registry, settings=Settings(prices=tuple(prices))) as llm:
        yield [AdvisorTool(llm, options=choice.options, max_calls=choice.max_calls or MAX_CALLS)]
