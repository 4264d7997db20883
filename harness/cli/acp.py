"""`harness acp`: any connector as an agent for editors. This file only says what may be typed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.options import ConfigOption, OptionOption, StoreOption, SystemOption, VerboseOption

EXAMPLES = """\b
Examples:
  harness acp --connector claude
  harness acp --connector codex --mode read_only -m gpt-5.5 -m gpt-5.5-mini
  acpx --agent "harness acp --connector claude" "What does this project do?"
"""


class ModeChoice(StrEnum):
    """The members of the contract's `PolicyMode`, which is not loaded for `--help`."""

    DEFAULT = "default"
    READ_ONLY = "read_only"
    ACCEPT_EDITS = "accept_edits"
    DONT_ASK = "dont_ask"
    BYPASS = "bypass"


@dataclass(frozen=True)
class AcpArguments:
    """What was typed, by the names of the options."""

    connector: str | None
    models: tuple[str, ...]
    system: str | None
    internal_tools: tuple[str, ...] | None
    mode: ModeChoice | None
    policy: Path | None
    config: Path | None
    store: str | None
    options: tuple[str, ...]
    verbose: bool


def acp(
    connector: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            envvar="HARNESS_CONNECTOR",
            help="Who answers: claude, fake ... By default the first usable.",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "-m", "--model", metavar="NAME", help="Model. Repeatable: the first is used, the client may choose another."
        ),
    ] = None,
    system: SystemOption = None,
    internal_tools: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,...", help="Tools of the peer's own that it may use, or 'none'; by default all that it has."
        ),
    ] = None,
    mode: Annotated[
        ModeChoice | None, typer.Option(help="The policy's mode at the start of a session; the client may change it.")
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Decides what it can before the person in the client is asked."),
    ] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    option: OptionOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Be an agent of the Agent Client Protocol on stdin and stdout, for editors and other clients.

    The client starts this command. What the agent wants to do is asked there; what it says beside goes to stderr.
    """
    from harness.cli.acp_serving import run_agent

    run_agent(
        AcpArguments(
            connector=connector or None,
            models=tuple(model or ()),
            system=system,
            internal_tools=None if internal_tools is None else tuple(internal_tools),
            mode=mode,
            policy=policy,
            config=config,
            store=store,
            options=tuple(option or ()),
            verbose=verbose,
        )
    )
