"""`--store`, the same on every command that keeps or reads conversations."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

StoreOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE",
        envvar="HARNESS_STORE",
        help="The journal of conversations, by default one in the user's state directory; 'memory' keeps none.",
    ),
]
