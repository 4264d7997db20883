"""What `harness tools` does: opens the sources, and shows their tools or runs one."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import anyio
import typer

from harness.cli.logs import set_up_logs
from harness.cli.terminal import Terminal, open_terminal
from harness.cli.tool_sources import open_services, read_servers
from harness.cli.tools import SourceArguments
from harness.cli.values import pairs
from harness.contract.content import ContentBlock, TextBlock
from harness.contract.tools import ToolCall, ToolDescriptor
from harness.contract.value import JsonValue
from harness.errors import InvalidArgument
from harness.orchestrator.tool_context import Progress, ToolContext
from harness.orchestrator.tool_files import load_tools
from harness.orchestrator.tool_provider import ToolOutcome
from harness.orchestrator.tool_registry import ToolRegistry, ToolSource

FAILED = 1
_CALL_ID = "typed"


def run_list(sources: SourceArguments, *, as_json: bool, verbose: bool) -> None:
    set_up_logs(verbose=verbose)
    functions = _functions(sources)
    with open_terminal(plain=True) as terminal:
        descriptors = anyio.run(_list, functions, sources)
        if as_json:
            shown = json.dumps([readable(one) for one in descriptors], indent=2, ensure_ascii=False)
            terminal.write_data(f"{shown}\n")
            return
        for descriptor in descriptors:
            terminal.write_data(f"{_line(descriptor)}\n")


def run_call(name: str, typed: Sequence[str], sources: SourceArguments, *, as_json: bool, verbose: bool) -> None:
    set_up_logs(verbose=verbose)
    call = ToolCall(call_id=_CALL_ID, tool_name=name, arguments_json=_arguments_json(typed))
    functions = _functions(sources)
    with open_terminal(plain=True) as terminal:
        outcome = anyio.run(partial(_call, functions, sources, call, terminal))
        terminal.write_data(f"{_as_json(outcome) if as_json else _as_text(outcome)}\n")
    raise typer.Exit(FAILED if outcome.is_error else 0)


def readable(tool: ToolDescriptor) -> dict[str, JsonValue]:
    """With its schemas as JSON instead of text."""
    shown = tool.to_dict()
    for name in ("input_schema", "output_schema"):
        text = shown.pop(f"{name}_json", None)
        if text is not None:
            shown[name] = json.loads(text)
    return shown


def _functions(sources: SourceArguments) -> list[Callable[..., Any]]:
    if not any((sources.tools, sources.mcp_config, sources.openapi, sources.ujmw)):
        raise InvalidArgument("no tools: give --tools, --mcp-config, --openapi or --ujmw")
    return load_tools(*sources.tools)


async def _list(functions: Sequence[ToolSource], sources: SourceArguments) -> list[ToolDescriptor]:
    async with _opened(functions, sources) as registry:
        return registry.descriptors


async def _call(
    functions: Sequence[ToolSource], sources: SourceArguments, call: ToolCall, terminal: Terminal
) -> ToolOutcome:
    def tell(step: Progress) -> None:
        total = "" if step.total is None else f" of {step.total:g}"
        terminal.write_note(f"{step.done:g}{total}{f', {step.message}' if step.message else ''}\n")

    async with _opened(functions, sources) as registry:
        known = [descriptor.name for descriptor in registry.descriptors]
        if call.tool_name not in known:
            raise InvalidArgument(f"no tool '{call.tool_name}'; these sources have: {', '.join(known) or 'none'}")
        return await registry.run(call, context=ToolContext(call.call_id, call.tool_name, tell))


@asynccontextmanager
async def _opened(functions: Sequence[ToolSource], sources: SourceArguments) -> AsyncGenerator[ToolRegistry]:
    async with AsyncExitStack() as stack:
        providers: list[ToolSource] = [*functions]
        providers += await stack.enter_async_context(open_services(sources.openapi, sources.ujmw))
        servers = read_servers(sources.mcp_config)
        if servers:
            from harness.orchestrator.mcp_source import open_mcp_source

            for server in servers:
                providers.append(await stack.enter_async_context(open_mcp_source(server)))
        yield await ToolRegistry.of(providers)


def _arguments_json(typed: Sequence[str]) -> str:
    """One JSON object as it is, else pairs."""
    if len(typed) == 1 and typed[0].lstrip().startswith("{"):
        return typed[0]
    return json.dumps(pairs(typed, "ARGUMENTS"))


def _line(tool: ToolDescriptor) -> str:
    """Name, what it does to the world, and the first line of what it says about itself."""
    does = "reads" if tool.read_only else "destroys" if tool.destructive else "writes"
    first = tool.description.partition("\n")[0]
    return f"{tool.name:30} {does:8} {first}".rstrip()


def _as_text(outcome: ToolOutcome) -> str:
    return "\n".join(_block_text(block) for block in outcome.content)


def _block_text(block: ContentBlock) -> str:
    if isinstance(block, TextBlock):
        return block.text
    shown = {name: value for name, value in block.to_dict().items() if name != "data"}
    return f"[{json.dumps(shown, ensure_ascii=False)}]"


def _as_json(outcome: ToolOutcome) -> str:
    structured = outcome.structured_content_json
    members: dict[str, JsonValue] = {
        "content": [block.to_dict() for block in outcome.content],
        "is_error": outcome.is_error,
    }
    if structured is not None:
        members["structured_content"] = json.loads(structured)
    return json.dumps(members, indent=2, ensure_ascii=False)
