"""`harness chat`: a conversation at a terminal. This file only says what may be typed to start it."""

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
from harness.cli.run import EffortChoice

EXAMPLES = """\b
Examples:
  harness chat --connector claude --tools tools.py
  harness chat --continue
  harness chat --url http://127.0.0.1:8800 --model small
"""


class ChatApprove(StrEnum):
    ASK = "ask"
    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True)
class ChatArguments:
    """What was typed, by the names of the options."""

    connector: str | None
    model: str | None
    system: str | None
    tools: tuple[str, ...]
    mcp_config: tuple[Path, ...]
    openapi: tuple[str, ...]
    ujmw: tuple[str, ...]
    internal_tools: tuple[str, ...]
    cwd: Path | None
    approve: ChatApprove | None
    policy: Path | None
    config: Path | None
    max_turns: int | None
    effort: EffortChoice | None
    tool_timeout: str | None
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
    verbose: bool


def chat(
    connector: ConnectorOption = None,
    model: ModelOption = None,
    system: SystemOption = None,
    tools: ToolsOption = None,
    mcp_config: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="MCP servers (the 'mcpServers' JSON). Repeatable.")
    ] = None,
    openapi: Annotated[
        list[str] | None,
        typer.Option(metavar="URL[#NAME,...]", help="A service with an OpenAPI document. Repeatable."),
    ] = None,
    ujmw: Annotated[
        list[str] | None, typer.Option(metavar="URL[#NAME,...]", help="A UJMW service. Repeatable.")
    ] = None,
    internal_tools: InternalToolsOption = None,
    cwd: CwdOption = None,
    approve: Annotated[
        ChatApprove | None,
        typer.Option(help="What to answer when the peer asks for leave; '/approve' changes it. By default ask."),
    ] = None,
    policy: PolicyOption = None,
    config: ConfigOption = None,
    max_turns: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, help="Most model calls for one message.")
    ] = None,
    effort: Annotated[EffortChoice | None, typer.Option(help="How hard the model thinks.")] = None,
    tool_timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Longest time for one tool call: 90s, 10m, 2h, or seconds.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Arguments uncut.")] = False,
    show_thinking: Annotated[bool, typer.Option("--show-thinking", help="The model's thinking.")] = False,
    show_usage: Annotated[bool, typer.Option("--show-usage", help="Tokens and costs after each answer.")] = False,
    plain: PlainOption = False,
    url: UrlOption = None,
    latest: LatestOption = False,
    resume: Annotated[
        str | None, typer.Option("-r", "--resume", metavar="ID", help="Go on with this conversation.")
    ] = None,
    fork: ForkOption = None,
    store: StoreOption = None,
    option: OptionOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Talk with an agent or model, message by message, with your functions as its tools.

    Ctrl-C cancels an answer, Ctrl-D leaves; '/help' tells what else may be typed.
    """
    from harness.cli.chatting import run_chat

    run_chat(
        ChatArguments(
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
            effort=effort,
            tool_timeout=tool_timeout,
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
            verbose=verbose,
        )
    )
