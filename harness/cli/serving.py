"""What `harness serve` does: the harness, the server around it, and signals."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import anyio
import typer

from harness.cli.canary import guarded
from harness.cli.configuration import read_configuration
from harness.cli.failures import complain
from harness.cli.interrupts import open_interrupts
from harness.cli.journals import journal_for
from harness.cli.logs import set_up_logs
from harness.cli.policies import policy_in_force
from harness.cli.serve import ServeArguments, ServeOutput
from harness.cli.values import pairs
from harness.cli.wrapped import WrappedConnector
from harness.connector import Connector
from harness.contract.options import ConversationOptions
from harness.contract.value import JsonValue
from harness.conversation.checks import parsed_object
from harness.local import LocalHarness
from harness.policy import Policy
from harness.registry import Registry
from harness.server_record import read_token_file
from harness.settings import Settings
from harness.surfaces.server import Server, local_token, serve


def run_server(arguments: ServeArguments) -> None:
    set_up_logs(verbose=arguments.verbose)
    anyio.run(_serve, arguments)


async def _serve(arguments: ServeArguments) -> None:
    configuration = read_configuration(arguments.config)
    force = policy_in_force(arguments.policy, configuration, Path.cwd())
    for remark in force.remarks:
        complain(remark)
    policy = Policy(force.policy) if force.is_configured else None
    settings = Settings(prices=configuration.prices, max_sessions=arguments.max_sessions)
    journal = journal_for(arguments.store, configuration.journal)
    names = arguments.connectors or (await first_usable(),)
    registry = await registry_of(names, pairs(arguments.options), flies_canary=not arguments.skip_canary)
    tokens = (local_token(read_token_file(arguments.token_file)),) if arguments.token_file else ()
    with open_interrupts() as signals:
        async with (
            LocalHarness(
                registry, default_connector=names[0], settings=settings, policy=policy, store=journal
            ) as harness,
            serve(
                harness,
                host=arguments.host,
                port=arguments.port,
                tokens=tokens,
                connectors=names,
                allowed_hosts=arguments.allowed_hosts,
                allowed_origins=arguments.allowed_origins,
            ) as server,
        ):
            _announce(server, names, arguments)
            async for _ in signals:
                break


def _announce(server: Server, names: tuple[str, ...], arguments: ServeArguments) -> None:
    secret = server.tokens[0].secret if arguments.print_token else None
    if arguments.output == ServeOutput.JSON:
        told = {"url": server.url, "pid": os.getpid(), "connectors": list(names), "token": secret}
        typer.echo(json.dumps({name: value for name, value in told.items() if value is not None}))
        return
    typer.echo(f"listening on {server.url}")
    if secret is not None:
        typer.echo(f"token {secret}")


async def first_usable() -> str:
    name, refusals = await Registry().first_usable(ConversationOptions())
    reasons = "".join(f"; not an earlier one: {refusal.message}" for refusal in refusals)
    complain(f"connector '{name}', the first usable one{reasons}")
    return name


async def registry_of(names: tuple[str, ...], preset: Mapping[str, JsonValue], *, flies_canary: bool) -> Registry:
    """These connectors and no others; the options are those of the first."""
    installed = Registry()
    connectors: dict[str, Connector] = {}
    for name in names:
        connector, _ = installed.resolve(ConversationOptions(connector=name))
        connectors.setdefault(connector.name, connector)
    first = names[0].partition(":")[0]
    if flies_canary:
        for name in names:
            plain = name.partition(":")[0]
            program = {key: preset[key] for key in ("command",) if plain == first and key in preset}
            connectors[plain] = await guarded(name, connectors[plain], program)
    if preset:
        connectors[first] = _Preset(connectors[first], preset)
    return Registry(connectors)


class _Preset(WrappedConnector):
    """A connector with options of the server below those that a caller gives."""

    def __init__(self, connector: Connector, preset: Mapping[str, JsonValue]) -> None:
        super().__init__(connector)
        self._preset = preset

    def completed(self, options: ConversationOptions) -> ConversationOptions:
        given = parsed_object(options.connector_options_json or "{}", "connector_options_json")
        return options.model_copy(update={"connector_options_json": json.dumps({**self._preset, **given})})
