"""`harness run PROMPT`: one message, answered with the caller's tools. This file only says what may be typed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.options import (
    ConfigOption,
    ConnectorOption,
    CwdOption,
    ForkOption,
    InternalToolsOption,
    LatestOption,
    ModelOption,
    OptionOption,
    PlainOption,
    PolicyOption,
    StoreOption,
    SystemOption,
    ToolsOption,
    UrlOption,
    VerboseOption,
)

EXAMPLES = """\b
Examples:
  harness run "What is the weather in Oslo?" --tools tools.py
  harness run "Find the invoice" --mcp-config mcp.json -v
  git diff | harness run --system "Review this diff." --connector claude
  harness run "Book it" --tools shop.py:book -o json | jq .calls
  harness run "Hello" --url http://127.0.0.1:8800
  harness run --continue "And tomorrow?"
  harness run "Hello" --connector fake -O 'steps=[{"text": "Hi."}]'
"""


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


class Approve(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"
    WAIT = "wait"


class EffortChoice(StrEnum):
    """The members of the contract's `Effort`, which is not loaded for `--help`."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    EXTRA_HIGH = "extra_high"


@dataclass(frozen=True)
class RunArguments:
    """What was typed, by the names of the options."""

    prompt: str | None
    connector: str | None
    model: str | None
    system: str | None
    tools: tuple[str, ...]
    mcp_config: tuple[Path, ...]
    openapi: tuple[str, ...]
    ujmw: tuple[str, ...]
    internal_tools: tuple[str, ...]
    cwd: Path | None
    approve: Approve | None
    policy: Path | None
    config: Path | None
    max_turns: int | None
    max_output_tokens: int | None
    effort: EffortChoice | None
    timeout: str | None
    tool_timeout: str | None
    output: Output
    full: bool
    show_thinking: bool
    show_usage: bool
    plain: bool
    url: str | None
    latest: bool
    resume: str | None
    fork: str | None
    store: str | None
    option: tuple[str, ...]
    dry_run: bool
    skip_canary: bool
    verbose: bool


def run(
    prompt: Annotated[
        str | None, typer.Argument(metavar="PROMPT", help="What to say; without it, or with '-', stdin is read.")
    ] = None,
    connector: ConnectorOption = None,
    model: ModelOption = None,
    system: SystemOption = None,
    tools: ToolsOption = None,
    mcp_config: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="MCP servers (the 'mcpServers' JSON): run here, or by the peer where that is possible. Repeatable.",
        ),
    ] = None,
    openapi: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL[#NAME,...]",
            help="A service with an OpenAPI document; names select operations by id or tag. Repeatable.",
        ),
    ] = None,
    ujmw: Annotated[
        list[str] | None,
        typer.Option(metavar="URL[#NAME,...]", help="A UJMW service; names select operations. Repeatable."),
    ] = None,
    internal_tools: InternalToolsOption = None,
    cwd: CwdOption = None,
    approve: Annotated[
        Approve | None,
        typer.Option(
            help="What to answer when the peer asks for leave. By default ask on a terminal, else deny. "
            "'wait' (with --url) leaves it to whoever answers there.",
        ),
    ] = None,
    policy: PolicyOption = None,
    config: ConfigOption = None,
    max_turns: Annotated[int | None, typer.Option(metavar="NUMBER", min=1, help="Most model calls.")] = None,
    max_output_tokens: Annotated[int | None, typer.Option(metavar="NUMBER", min=1, help="Most output tokens.")] = None,
    effort: Annotated[EffortChoice | None, typer.Option(help="How hard the model thinks.")] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Longest time for all: 90s, 10m, 2h, or seconds.")
    ] = None,
    tool_timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Longest time for one tool call.")
    ] = None,
    output: Annotated[Output, typer.Option("-o", "--output", help="What stdout gets.")] = Output.TEXT,
    full: Annotated[bool, typer.Option("--full", help="Arguments uncut and, in JSON, the tools' results.")] = False,
    show_thinking: Annotated[bool, typer.Option("--show-thinking", help="The model's thinking on stderr.")] = False,
    show_usage: Annotated[bool, typer.Option("--show-usage", help="Tokens and costs on stderr.")] = False,
    plain: PlainOption = False,
    url: UrlOption = None,
    latest: LatestOption = False,
    resume: Annotated[
        str | None,
        typer.Option(
            "-r",
            "--resume",
            metavar="ID",
            help="Go on with this conversation; without PROMPT with its turn that has not ended.",
        ),
    ] = None,
    fork: ForkOption = None,
    store: StoreOption = None,
    option: OptionOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be started, start nothing.")] = False,
    skip_canary: Annotated[
        bool, typer.Option("--skip-canary", help="Do not try first whether a program with tools of its own asks.")
    ] = False,
    verbose: VerboseOption = False,
) -> None:
    """Ask an agent or model, with your functions as its tools.

    The answer goes to stdout, all else to stderr. Exit codes: 0 answered, 1 failed, 2 wrong usage, 3 connector not
    available, 4 cut off by a limit, 5 refused by the model, 124 out of time, 130 interrupted.
    """
    from harness.cli.run_once import run_once

    run_once(
        RunArguments(
            prompt=prompt,
            connector=connector or None,
            model=model,
            system=system,
            tools=tuple(tools or ()),
            mcp_config=tuple(mcp_config or ()),
            openapi=tuple(openapi or ()),
            ujmw=tuple(ujmw or ()),
            internal_tools=tuple(internal_tools or ()),
            cwd=cwd,
            approve=approve,
            policy=policy,
            config=config,
            max_turns=max_turns,
            max_output_tokens=max_output_tokens,
            effort=effort,
            timeout=timeout,
            tool_timeout=tool_timeout,
            output=output,
            full=full,
            show_thinking=show_thinking,
            show_usage=show_usage,
            plain=plain,
            url=url,
            latest=latest,
            resume=resume,
            fork=fork,
            store=store,
            option=tuple(option or ()),
            dry_run=dry_run,
            skip_canary=skip_canary,
            verbose=verbose,
        )
    )
