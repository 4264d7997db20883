"""`harness tools`: shows and tries tools without a model. This file only says what may be typed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """\b
Examples:
  harness tools list --tools tools.py
  harness tools list --mcp-config mcp.json --json
  harness tools call get_weather city=Oslo --tools tools.py
  harness tools call add '{"a": 1, "b": 2}' --mcp-config mcp.json
  harness tools list --openapi http://127.0.0.1:8000/openapi.json#read
"""

Tools = Annotated[
    list[str] | None,
    typer.Option("--tools", metavar="FILE.py[:NAME]", help="Functions that become tools. Repeatable."),
]
McpConfig = Annotated[
    list[Path] | None,
    typer.Option("--mcp-config", metavar="FILE", help="MCP servers: the 'mcpServers' JSON. Repeatable."),
]
OpenApi = Annotated[
    list[str] | None,
    typer.Option(
        "--openapi",
        metavar="URL[#NAME,...]",
        help="A service with an OpenAPI document (URL or file); names select operations by id or tag. Repeatable.",
    ),
]
Ujmw = Annotated[
    list[str] | None,
    typer.Option("--ujmw", metavar="URL[#NAME,...]", help="A UJMW service; names select operations. Repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Say more on stderr, with tracebacks.")]


@dataclass(frozen=True)
class SourceArguments:
    """Where tools come from, as typed."""

    tools: tuple[str, ...]
    mcp_config: tuple[Path, ...]
    openapi: tuple[str, ...]
    ujmw: tuple[str, ...]


def list_tools(
    tools: Tools = None,
    mcp_config: McpConfig = None,
    openapi: OpenApi = None,
    ujmw: Ujmw = None,
    json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """List the tools of these sources, as a model would be told about them."""
    from harness.cli.tool_trial import run_list

    run_list(_sources(tools, mcp_config, openapi, ujmw), as_json=json, verbose=verbose)


def call_tool(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGUMENTS", help="One JSON object, or KEY=VALUE with the value in JSON."),
    ] = None,
    tools: Tools = None,
    mcp_config: McpConfig = None,
    openapi: OpenApi = None,
    ujmw: Ujmw = None,
    json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run one tool, with its arguments checked as for a model.

    The result goes to stdout; exit code 1 when it is an error. You typed it, so no policy is asked.
    """
    from harness.cli.tool_trial import run_call

    sources = _sources(tools, mcp_config, openapi, ujmw)
    run_call(name, tuple(arguments or ()), sources, as_json=json, verbose=verbose)


def _sources(
    tools: list[str] | None, mcp_config: list[Path] | None, openapi: list[str] | None, ujmw: list[str] | None
) -> SourceArguments:
    return SourceArguments(tuple(tools or ()), tuple(mcp_config or ()), tuple(openapi or ()), tuple(ujmw or ()))


def build_tools_app() -> typer.Typer:
    app = typer.Typer(
        help="See and try tools without a model.", epilog=EXAMPLES, no_args_is_help=True, rich_markup_mode=None
    )
    app.command("list")(list_tools)
    app.command("call")(call_tool)
    return app
