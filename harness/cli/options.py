"""Options that several commands have, the same on each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

AllowedHostOption: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="A further name that clients call this server by.")
]
AllowedOriginOption: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="ORIGIN", help="Web pages from there may use this server. Repeatable.")
]
ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Configuration, in place of the user's config.toml.")
]
ConnectorOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        envvar="HARNESS_CONNECTOR",
        help="Who answers: claude, fake ... By default the first usable one.",
    ),
]
CwdOption: TypeAlias = Annotated[Path | None, typer.Option(metavar="DIRECTORY", help="Directory the peer works in.")]
ForkOption: TypeAlias = Annotated[
    str | None, typer.Option("--fork", metavar="ID", help="Go on from this conversation in a new one.")
]
HostOption: TypeAlias = Annotated[
    str, typer.Option(help="Address to listen on; one that others can reach needs --token-file.")
]
InternalToolsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME,...", help="Tools of the peer's own that it may use; by default none."),
]
LatestOption: TypeAlias = Annotated[
    bool, typer.Option("-c", "--continue", help="Go on with the latest conversation begun in this directory.")
]
MaxSessionsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=1,
        help="Most peers at the same time; the one that was idle longest makes room and resumes later.",
    ),
]
ModelOption: TypeAlias = Annotated[
    str | None, typer.Option("-m", "--model", metavar="NAME", help="Model, by the connector's name for it.")
]
OptionOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("-O", "--option", metavar="KEY=VALUE", help="Option of the connector, value in JSON. Repeatable."),
]
PlainOption: TypeAlias = Annotated[
    bool, typer.Option("--plain", help="No colours and no live text; also by NO_COLOR or without a terminal.")
]
PolicyOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Which calls may run, which may not, and which are asked about; see 'harness policy'."
    ),
]
PortOption: TypeAlias = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")]
PrintTokenOption: TypeAlias = Annotated[bool, typer.Option("--print-token", help="Tell the token on stdout.")]
ServedConnectorsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        envvar="HARNESS_CONNECTOR",
        help="Who answers: claude, fake ... Repeatable, the first is the default. Without it the first usable one.",
    ),
]
ServedOptionOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "-O", "--option", metavar="KEY=VALUE", help="Option of the first connector, value in JSON. Repeatable."
    ),
]
SkipCanaryOption: TypeAlias = Annotated[
    bool, typer.Option("--skip-canary", help="Do not try first whether an unknown version of a CLI still asks.")
]
SystemOption: TypeAlias = Annotated[
    str | None, typer.Option(metavar="TEXT", help="System prompt, in place of the connector's own.")
]
ToolsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE.py[:NAME]", help="Functions that become tools: all public ones, or one. Repeatable."),
]
UrlOption: TypeAlias = Annotated[
    str | None, typer.Option(metavar="URL", help="A running 'harness serve'; tools still run here.")
]
VerboseOption: TypeAlias = Annotated[bool, typer.Option("-v", "--verbose", help="Say more on stderr, with tracebacks.")]
StoreOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE",
        envvar="HARNESS_STORE",
        help="The journal of conversations, by default one in the user's state directory; 'memory' keeps none.",
    ),
]
