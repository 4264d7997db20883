"""The server behind `harness mcp`: over stdio or HTTP, until its client or a signal ends it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING

import anyio
import typer

from harness.cli.configuration import read_configuration
from harness.cli.failures import complain
from harness.cli.interrupts import open_interrupts
from harness.cli.journals import journal_for
from harness.cli.logs import set_up_logs
from harness.cli.mcp import McpArguments
from harness.cli.policies import policy_in_force
from harness.cli.serving import first_usable, registry_of
from harness.cli.values import names, pairs
from harness.contract.options import ConversationOptions
from harness.errors import ConnectorUnavailable, InvalidArgument, unwrapped
from harness.local import LocalHarness
from harness.policy import Policy
from harness.server_record import is_loopback, read_token_file
from harness.settings import Settings

if TYPE_CHECKING:
    from harness.surfaces.mcp_server.server import Offer

OWNER = "mcp"
"""A model may be behind the client: it sees and deletes what clients of this server began, never the user's own."""
_INSTALL = "'harness mcp' needs the package 'mcp'; type: pip install 'level2-harness[mcp]'"


def run_mcp_server(arguments: McpArguments) -> None:
    set_up_logs(verbose=arguments.verbose)
    try:
        import mcp as _  # noqa: F401
    except ImportError as error:
        raise ConnectorUnavailable(_INSTALL, reason="not_installed") from error
    anyio.run(_serve, arguments)


async def _serve(arguments: McpArguments) -> None:
    from harness.surfaces.mcp_server.people import ApprovalChoice
    from harness.surfaces.mcp_server.server import Offer, ToolChoice

    _check_transport(arguments)
    directory = _directory(arguments)
    configuration = read_configuration(arguments.config)
    force = policy_in_force(arguments.policy, configuration, directory)
    for remark in force.remarks:
        complain(remark)
    chosen = arguments.connectors or (await first_usable(),)
    registry = await registry_of(chosen, pairs(arguments.options), flies_canary=not arguments.skip_canary)
    offer = Offer(
        chosen,
        ToolChoice(arguments.tools),
        ApprovalChoice(arguments.approve),
        ConversationOptions(
            model=arguments.model,
            system_prompt=arguments.system,
            internal_tools=names(arguments.internal_tools),
            limits=configuration.limits,
            cwd=str(directory),
        ),
    )
    harness = LocalHarness(
        registry,
        default_connector=chosen[0],
        settings=Settings(prices=configuration.prices, max_sessions=arguments.max_sessions),
        policy=Policy(force.policy) if force.is_configured else None,
        store=journal_for(arguments.store, configuration.journal),
        takes_up_turns=arguments.http,  # a client's own server comes and goes: what others left is theirs
    )
    with open_interrupts() as signals:
        async with harness:
            if arguments.http:
                await _over_http(harness, offer, arguments, directory, signals)
            else:
                await _over_stdio(harness, offer, directory, signals)


def _check_transport(arguments: McpArguments) -> None:
    """Who names a port means HTTP, and would wait for ever for a line about it."""
    for option, value in (
        ("--port", arguments.port),
        ("--token-file", arguments.token_file),
        ("--print-token", arguments.print_token),
        ("--allowed-host", arguments.allowed_hosts),
        ("--allowed-origin", arguments.allowed_origins),
    ):
        if value and not arguments.http:
            raise InvalidArgument(f"{option}: is for a server over HTTP; add --http")


def _directory(arguments: McpArguments) -> Path:
    if arguments.cwd is not None and not arguments.cwd.is_dir():
        raise InvalidArgument(f"--cwd: '{arguments.cwd}' is no directory")
    return (arguments.cwd or Path.cwd()).resolve()


async def _over_stdio(harness: LocalHarness, offer: Offer, directory: Path, signals: AsyncIterator[Signals]) -> None:
    from harness.surfaces.mcp_server.stdio import serve_stdio
    from harness.surfaces.server import local_token

    with unwrapped():
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_on_signal, signals, group.cancel_scope)
            await serve_stdio(harness, offer, local_token(directory=directory, owner=OWNER))
            group.cancel_scope.cancel()


async def _cancel_on_signal(signals: AsyncIterator[Signals], everything: anyio.CancelScope) -> None:
    async for _ in signals:
        everything.cancel()


async def _over_http(
    harness: LocalHarness,
    offer: Offer,
    arguments: McpArguments,
    directory: Path,
    signals: AsyncIterator[Signals],
) -> None:
    from harness.surfaces.mcp_server.http import PATH, mcp_dialect
    from harness.surfaces.server import local_token, serve

    secret = read_token_file(arguments.token_file) if arguments.token_file else None
    async with serve(
        harness,
        host=arguments.host,
        port=arguments.port,
        tokens=(local_token(secret, directory, OWNER),) if secret or is_loopback(arguments.host) else (),
        connectors=offer.connectors,
        also=(mcp_dialect(offer),),
        allowed_hosts=arguments.allowed_hosts,
        allowed_origins=arguments.allowed_origins,
    ) as server:
        typer.echo(f"listening on {server.url}{PATH}")
        if arguments.print_token:
            typer.echo(f"token {server.tokens[0].secret}")
        async for _ in signals:
            break
