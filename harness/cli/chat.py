"""`harness chat`: a conversation at a terminal. This file only says what may be typed to start it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.run import EffortChoice
from harness.cli.store_option import StoreOption

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
    connector: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            envvar="HARNESS_CONNECTOR",
            help="Who answers: claude, fake ... By default the first usable one.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("-m", "--model", metavar="NAME", help="Model, by the connector's name for it.")
    ] = None,
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="System prompt, in place of the connector's own.")
    ] = None,
    tools: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE.py[:NAME]", help="Functions that become tools: all public ones, or one. Repeatable."
        ),
    ] = None,
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
    internal_tools: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,...", help="Tools of the peer's own that it may use; by default none."),
    ] = None,
    cwd: Annotated[Path | None, typer.Option(metavar="DIRECTORY", help="Directory the peer works in.")] = None,
    approve: Annotated[
        ChatApprove | None,
        typer.Option(help="What to answer when the peer asks for leave; '/approve' changes it. By default ask."),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Which calls may run, which may not, and which are asked about; see 'harness policy'."
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Configuration, in place of the user's config.toml.")
    ] = None,
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
    plain: Annotated[
        bool, typer.Option("--plain", help="No colours and no live text; also by NO_COLOR or without a terminal.")
    ] = False,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="A running 'harness serve'; tools still run here.")
    ] = None,
    latest: Annotated[
        bool, typer.Option("-c", "--continue", help="Go on with the latest conversation begun in this directory.")
    ] = False,
    resume: Annotated[
        str | None, typer.Option("-r", "--resume", metavar="ID", help="Go on with this conversation.")
    ] = None,
    fork: Annotated[
        str | None, typer.Option("--fork", metavar="ID", help="Go on from this conversation in a new one.")
    ] = None,
    store: StoreOption = None,
    option: Annotated[
        list[str] | None,
        typer.Option("-O", "--option", metavar="KEY=VALUE", help="Option of the connector, value in JSON. Repeatable."),
    ] = None,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more on stderr, with tracebacks.")] = False,
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
