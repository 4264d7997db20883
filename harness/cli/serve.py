"""`harness serve`: conversations over HTTP, or over stdin and stdout. This file only says what may be typed."""

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
  harness serve --connector claude
  harness serve --connector fake --port 8800 -O 'steps=[{"text": "Hi."}]'
  harness run "Hello" --url http://127.0.0.1:8800
  harness serve --stdio --connector claude
"""
DEFAULT_HOST = "127.0.0.1"


class ServeOutput(StrEnum):
    TEXT = "text"
    JSON = "json"


class UjmwEnums(StrEnum):
    NAMES = "names"
    NUMBERS = "numbers"


class SideAnswers(StrEnum):
    KEEP = "keep"
    ANSWER = "answer"
    REFUSE = "refuse"


@dataclass(frozen=True)
class ServeArguments:
    """What was typed, by the names of the options."""

    connectors: tuple[str, ...]
    host: str
    port: int
    token_file: Path | None
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    options: tuple[str, ...]
    policy: Path | None
    config: Path | None
    store: str | None
    max_sessions: int | None
    output: ServeOutput
    print_token: bool
    stdio: bool
    ujmw_enums: UjmwEnums
    hide_fault_details: bool
    side_requests: SideAnswers
    skip_canary: bool
    verbose: bool


def serve(
    connector: ServedConnectorsOption = None,
    host: HostOption = DEFAULT_HOST,
    port: PortOption = 0,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the bearer token. By default one is made, which your own programs here find."),
    ] = None,
    allowed_host: AllowedHostOption = None,
    allowed_origin: AllowedOriginOption = None,
    option: ServedOptionOption = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Answers what it can before a caller is asked, and cannot be widened by one."
        ),
    ] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    max_sessions: MaxSessionsOption = None,
    output: Annotated[ServeOutput, typer.Option("-o", "--output", help="What stdout gets.")] = ServeOutput.TEXT,
    print_token: PrintTokenOption = False,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="JSON-RPC on stdin and stdout in place of HTTP, for whoever starts it.")
    ] = False,
    ujmw_enums: Annotated[
        UjmwEnums, typer.Option(help="How UJMW writes enums; 'numbers' is for serializers that read no names.")
    ] = UjmwEnums.NAMES,
    hide_fault_details: Annotated[
        bool, typer.Option("--hide-fault-details", help="A fault of UJMW tells its code only; the log has the rest.")
    ] = False,
    side_requests: Annotated[
        SideAnswers,
        typer.Option(
            help="A request of an OpenAI or Anthropic client that has no tools and continues nothing: "
            "keep its peer for the next one, answer it and end the peer, or refuse it."
        ),
    ] = SideAnswers.KEEP,
    skip_canary: SkipCanaryOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Serve conversations over HTTP until Ctrl-C, or with --stdio over stdin and stdout until their end.

    Callers bring their own tools, which run on their side. They may not name programs or files of this machine, and
    work below the current directory only; with --stdio the caller is the program that started us, and may.
    """
    from harness.cli.serving import run_server

    run_server(
        ServeArguments(
            connectors=tuple(connector or ()),
            host=host,
            port=port,
            token_file=token_file,
            allowed_hosts=tuple(allowed_host or ()),
            allowed_origins=tuple(allowed_origin or ()),
            options=tuple(option or ()),
            policy=policy,
            config=config,
            store=store,
            max_sessions=max_sessions,
            output=output,
            print_token=print_token,
            stdio=stdio,
            ujmw_enums=ujmw_enums,
            hide_fault_details=hide_fault_details,
            side_requests=side_requests,
            skip_canary=skip_canary,
            verbose=verbose,
        )
    )
