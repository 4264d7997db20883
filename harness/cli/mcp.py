"""`harness mcp`: a connector as an MCP server. This file only says what may be typed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.options import (
    AllowedHostOption,
    AllowedOriginOption,
    ConfigOption,
    HostOption,
    MaxSessionsOption,
    PortOption,
    PrintTokenOption,
    ServedConnectorsOption,
    ServedOptionOption,
    SkipCanaryOption,
    StoreOption,
    VerboseOption,
)

EXAMPLES = """\b
Examples:
  harness mcp --connector claude
  harness mcp --connector claude --internal-tools Read,Grep --tools ask
  harness mcp --connector codex --http --port 8801 --token-file token
"""


class McpTools(StrEnum):
    ALL = "all"
    ASK = "ask"
    OPERATIONS = "operations"


class McpApprove(StrEnum):
    ASK = "ask"
    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True)
class McpArguments:
    """What was typed, by the names of the options."""

    connectors: tuple[str, ...]
    model: str | None
    system: str | None
    internal_tools: tuple[str, ...]
    cwd: Path | None
    options: tuple[str, ...]
    tools: McpTools
    approve: McpApprove
    policy: Path | None
    config: Path | None
    store: str | None
    max_sessions: int | None
    http: bool
    host: str
    port: int
    token_file: Path | None
    print_token: bool
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    skip_canary: bool
    verbose: bool


def mcp(
    connector: ServedConnectorsOption = None,
    model: Annotated[
        str | None, typer.Option("-m", "--model", metavar="NAME", help="Model, unless the client names another.")
    ] = None,
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="System prompt, unless the client brings another.")
    ] = None,
    internal_tools: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,...",
            help="Tools of the agent's own that it may use, unless the client names others; by default none.",
        ),
    ] = None,
    cwd: Annotated[
        Path | None,
        typer.Option(metavar="DIRECTORY", help="Directory the agents work in and below; by default the current one."),
    ] = None,
    option: ServedOptionOption = None,
    tools: Annotated[
        McpTools,
        typer.Option(help="Tools that clients see: 'ask' for agents, 'operations' to host tools, or both."),
    ] = McpTools.ALL,
    approve: Annotated[
        McpApprove,
        typer.Option(
            help="What the policy leaves open during 'ask': the person at the client is asked if it has one, and else "
            "denied; or it is always allowed, or always denied."
        ),
    ] = McpApprove.ASK,
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Answers what it can before anybody is asked, and cannot be widened by a client."
        ),
    ] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    max_sessions: MaxSessionsOption = None,
    http: Annotated[
        bool, typer.Option("--http", help="Over HTTP, at /mcp of a server like that of 'harness serve'; not on stdio.")
    ] = False,
    host: HostOption = "127.0.0.1",
    port: PortOption = 0,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the bearer token that clients send. By default one is made."),
    ] = None,
    print_token: PrintTokenOption = False,
    allowed_host: AllowedHostOption = None,
    allowed_origin: AllowedOriginOption = None,
    skip_canary: SkipCanaryOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Be an MCP server: any MCP client can ask a connector, or host its tools.

    On stdin and stdout until the client closes stdin, or with --http until Ctrl-C. Clients name no programs or files of
    this machine.
    """
    from harness.cli.mcp_serving import run_mcp_server

    run_mcp_server(
        McpArguments(
            connectors=tuple(connector or ()),
            model=model,
            system=system,
            internal_tools=tuple(internal_tools or ()),
            cwd=cwd,
            options=tuple(option or ()),
            tools=tools,
            approve=approve,
            policy=policy,
            config=config,
            store=store,
            max_sessions=max_sessions,
            http=http,
            host=host,
            port=port,
            token_file=token_file,
            print_token=print_token,
            allowed_hosts=tuple(allowed_host or ()),
            allowed_origins=tuple(allowed_origin or ()),
            skip_canary=skip_canary,
            verbose=verbose,
        )
    )
