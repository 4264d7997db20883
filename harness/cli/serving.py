"""What `harness serve` does: the harness, the server around it, and signals."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio
import typer

from harness.cli.canary import guarded
from harness.cli.configuration import read_configuration
from harness.cli.failures import complain
from harness.cli.interrupts import open_interrupts
from harness.cli.journals import journal_for
from harness.cli.logs import set_up_logs
from harness.cli.policies import policy_in_force
from harness.cli.serve import DEFAULT_HOST, ServeArguments, ServeOutput, SideAnswers, UjmwEnums
from harness.cli.values import pairs
from harness.cli.wrapped import WrappedConnector
from harness.connector import Connector
from harness.contract.delegation import PolicyMode
from harness.contract.options import ConversationOptions
from harness.contract.value import JsonValue
from harness.conversation.checks import parsed_object
from harness.errors import ConnectorUnavailable, InvalidArgument
from harness.local import LocalHarness
from harness.policy import Policy
from harness.registry import Registry
from harness.server_record import read_token_file
from harness.settings import Settings
from harness.surfaces.app import base_urls, package_version
from harness.surfaces.compatible.settings import CompatibleSettings, SideRequests
from harness.surfaces.descriptors import take_streams
from harness.surfaces.server import Server, connectors_of, local_token, serve
from harness.surfaces.stdio.server import serve_stdio
from harness.surfaces.ujmw.settings import UjmwSettings
from harness.surfaces.ujmw.surface import ujmw_dialect
from harness.testing.canary import PROGRAM_OPTIONS

Signals: TypeAlias = AsyncIterator[signal.Signals]
Way: TypeAlias = Callable[[LocalHarness, tuple[str, ...], ServeArguments, Signals], Awaitable[None]]
"""How callers reach the harness, until they or a signal end it."""


def run_server(arguments: ServeArguments) -> None:
    set_up_logs(verbose=arguments.verbose)
    if arguments.stdio:
        _check_stdio(arguments)
        incoming, outgoing = take_streams()
        anyio.run(_serve, arguments, partial(_serve_stdio, incoming=incoming, outgoing=outgoing))
    else:
        anyio.run(_serve, arguments, _serve_http)


async def _serve(arguments: ServeArguments, way: Way) -> None:
    configuration = read_configuration(arguments.config)
    force = policy_in_force(arguments.policy, configuration, Path.cwd())
    for remark in force.remarks:
        complain(remark)
    policy = Policy(force.policy) if force.is_configured else None
    settings = Settings(prices=configuration.prices, max_sessions=arguments.max_sessions)
    journal = journal_for(arguments.store, configuration.journal)
    names = arguments.connectors or (await first_usable(),)
    registry = await registry_of(names, pairs(arguments.options), flies_canary=not arguments.skip_canary)
    with open_interrupts() as signals:
        async with LocalHarness(
            registry, default_connector=names[0], settings=settings, policy=policy, store=journal
        ) as harness:
            await way(harness, names, arguments, signals)


async def _serve_http(
    harness: LocalHarness, names: tuple[str, ...], arguments: ServeArguments, signals: Signals
) -> None:
    tokens = (local_token(read_token_file(arguments.token_file)),) if arguments.token_file else ()
    ujmw = UjmwSettings(
        hide_fault_details=arguments.hide_fault_details, enums_as_integers=arguments.ujmw_enums == UjmwEnums.NUMBERS
    )
    async with serve(
        harness,
        host=arguments.host,
        port=arguments.port,
        tokens=tokens,
        connectors=names,
        also=[ujmw_dialect(ujmw)],
        compatible=_compatible(harness, arguments),
        allowed_hosts=arguments.allowed_hosts,
        allowed_origins=arguments.allowed_origins,
    ) as server:
        _announce(server, names, arguments)
        async for _ in signals:
            break


def _compatible(harness: LocalHarness, arguments: ServeArguments) -> CompatibleSettings:
    """A policy that allows only what changes nothing must not take a client's word for it that was never given."""
    is_read_only = harness.policy is not None and harness.policy.rules.mode == PolicyMode.READ_ONLY
    return CompatibleSettings(
        side_requests=SideRequests(arguments.side_requests.value), parallel_calls=not is_read_only
    )


async def _serve_stdio(
    harness: LocalHarness,
    names: tuple[str, ...],
    arguments: ServeArguments,
    signals: Signals,
    *,
    incoming: int,
    outgoing: int,
) -> None:
    stopping = anyio.Event()

    async def stop_on_signal() -> None:
        async for _ in signals:
            stopping.set()

    async with anyio.create_task_group() as group:
        group.start_soon(stop_on_signal)
        await serve_stdio(
            harness, connectors_of(names), incoming, outgoing, version=package_version(), stopping=stopping
        )
        group.cancel_scope.cancel()


def _check_stdio(arguments: ServeArguments) -> None:
    """Raises:
    InvalidArgument: something was typed that only HTTP has.
    """
    of_http = {
        "--host": arguments.host != DEFAULT_HOST,
        "--port": arguments.port != 0,
        "--token-file": arguments.token_file is not None,
        "--allowed-host": bool(arguments.allowed_hosts),
        "--allowed-origin": bool(arguments.allowed_origins),
        "--output": arguments.output != ServeOutput.TEXT,
        "--print-token": arguments.print_token,
        "--ujmw-enums": arguments.ujmw_enums != UjmwEnums.NAMES,
        "--hide-fault-details": arguments.hide_fault_details,
        "--side-requests": arguments.side_requests != SideAnswers.KEEP,
    }
    typed = [f"'{name}'" for name, is_typed in of_http.items() if is_typed]
    if typed:
        raise InvalidArgument(f"{', '.join(typed)} and '--stdio' do not go together: leave one of them out")


def _announce(server: Server, names: tuple[str, ...], arguments: ServeArguments) -> None:
    secret = server.tokens[0].secret if arguments.print_token else None
    if arguments.output == ServeOutput.JSON:
        told = {
            "url": server.url,
            "pid": os.getpid(),
            "connectors": list(names),
            "base_urls": base_urls(server.url),
            "token": secret,
        }
        typer.echo(json.dumps({name: value for name, value in told.items() if value is not None}))
        return
    typer.echo(f"listening on {server.url}")
    if secret is not None:
        typer.echo(f"token {secret}")
    for clients, url in base_urls(server.url).items():
        typer.echo(f"{clients} clients: {url}")


async def first_usable() -> str:
    name, refusals = await Registry().first_usable(ConversationOptions())
    reasons = "".join(f"; not an earlier one: {refusal.message}" for refusal in refusals)
    complain(f"connector '{name}', the first usable one{reasons}")
    return name


async def registry_of(names: tuple[str, ...], preset: Mapping[str, JsonValue], *, flies_canary: bool) -> Registry:
    """These connectors and no others; the options are those of the first.

    Raises:
        InvalidArgument: the first connector has no such option, or not with such a value.
    """
    installed = Registry()
    connectors: dict[str, Connector] = {}
    for name in names:
        connector, _ = installed.resolve(ConversationOptions(connector=name))
        connectors.setdefault(connector.name, connector)
    first = names[0].partition(":")[0]
    if preset:
        await _check_options(_Preset(connectors[first], preset), names[0])
    if flies_canary:
        for name in names:
            plain = name.partition(":")[0]
            program = {key: preset[key] for key in PROGRAM_OPTIONS if plain == first and key in preset}
            connectors[plain] = await guarded(name, connectors[plain], program)
    if preset:
        connectors[first] = _Preset(connectors[first], preset)
    return Registry(connectors)


async def _check_options(connector: Connector, name: str) -> None:
    """A slip of the operator is told to the operator, not to the first caller."""
    with suppress(ConnectorUnavailable):  # its program may be installed later; until then each caller is told
        _, options = Registry({connector.name: connector}).resolve(ConversationOptions(connector=name))
        await connector.get_capabilities(options)


class _Preset(WrappedConnector):
    """A connector with options of the server below those that a caller gives."""

    def __init__(self, connector: Connector, preset: Mapping[str, JsonValue]) -> None:
        super().__init__(connector)
        self._preset = preset

    def completed(self, options: ConversationOptions) -> ConversationOptions:
        given = parsed_object(options.connector_options_json or "{}", "connector_options_json")
        return options.model_copy(update={"connector_options_json": json.dumps({**self._preset, **given})})
