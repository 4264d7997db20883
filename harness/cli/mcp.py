"""`harness mcp`: a connector as an MCP server. This file only says what may be typed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.store_option import StoreOption

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
    connector: Annotated[
        list[str] | None,
        typer.Option(
            envvar="HARNESS_CONNECTOR",
            help="Who answers: claude, fake ... Repeatable, the first is the default. Without it the first usable one.",
        ),
    ] = None,
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
    option: Annotated[
        list[str] | None,
        typer.Option(
            "-O", "--option", metavar="KEY=VALUE", help="Option of the first connector, value in JSON. Repeatable."
        ),
    ] = None,
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
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Configuration, in place of the user's config.toml.")
    ] = None,
    store: StoreOption = None,
    max_sessions: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="Most peers at the same time; the one that was idle longest makes room and resumes later.",
        ),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Over HTTP, at /mcp of a server like that of 'harness serve'; not on stdio.")
    ] = False,
    host: Annotated[
        str, typer.Option(help="Address to listen on; one that others can reach needs --token-file.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 0,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the bearer token that clients send. By default one is made."),
    ] = None,
    print_token: Annotated[bool, typer.Option("--print-token", help="Tell the token on stdout.")] = False,
    allowed_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A further name that clients call this server by.")
    ] = None,
    allowed_origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="Web pages from there may use this server. Repeatable.")
    ] = None,
    skip_canary: Annotated[
        bool, typer.Option("--skip-canary", help="Do not try first whether an unknown version of a CLI still asks.")
    ] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more on stderr, with tracebacks.")] = False,
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
