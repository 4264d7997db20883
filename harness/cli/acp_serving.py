"""What `harness acp` does: the harness, and the agent on stdin and stdout."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import anyio

from harness.cli.acp import AcpArguments
from harness.cli.configuration import Configuration, read_configuration
from harness.cli.failures import complain
from harness.cli.interrupts import open_interrupts
from harness.cli.journals import journal_for
from harness.cli.logs import set_up_logs
from harness.cli.policies import policy_in_force
from harness.cli.resuming import directory_label
from harness.cli.values import names, pairs
from harness.contract.delegation import PolicyMode, RequestPolicy
from harness.contract.options import ConversationOptions
from harness.errors import unwrapped
from harness.local import LocalHarness
from harness.registry import Registry
from harness.settings import Settings
from harness.surfaces.acp_agent.opening import AgentSettings
from harness.surfaces.acp_agent.stdio import serve_agent
from harness.surfaces.descriptors import read_some, take_streams, write_all

NO_TOOLS = "none"


def run_agent(arguments: AcpArguments) -> None:
    set_up_logs(verbose=arguments.verbose)
    anyio.run(_run, arguments, *take_streams())


async def _run(arguments: AcpArguments, incoming: int, outgoing: int) -> None:
    configuration = read_configuration(arguments.config)
    registry = Registry()
    settings = await _settings(arguments, configuration, registry)
    # what other runs have left is theirs: only the session that is asked for is taken up
    harness = LocalHarness(
        registry,
        settings=Settings(prices=configuration.prices),
        store=journal_for(arguments.store, configuration.journal),
        takes_up_turns=False,
    )
    with open_interrupts() as signals, unwrapped():
        async with harness, anyio.create_task_group() as group:

            async def serve() -> None:
                await serve_agent(harness, settings, partial(read_some, incoming), partial(write_all, outgoing))
                group.cancel_scope.cancel()

            group.start_soon(serve)
            async for _ in signals:
                break
            group.cancel_scope.cancel()


async def _settings(arguments: AcpArguments, configuration: Configuration, registry: Registry) -> AgentSettings:
    given = pairs(arguments.options)
    options_json = json.dumps(given) if given else None
    wanted = ConversationOptions(connector=arguments.connector, connector_options_json=options_json)
    if arguments.connector is None:
        connector, refusals = await registry.first_usable(wanted)
        reasons = "".join(f"; not usable: {refusal.message}" for refusal in refusals)
        complain(f"connector '{connector}', the first usable one{reasons}")
    else:
        connector = arguments.connector
        registry.resolve(wanted)
    tools = None if arguments.internal_tools is None else names(arguments.internal_tools)
    return AgentSettings(
        connector=connector,
        policy=_policy(arguments, configuration),
        models=arguments.models,
        system_prompt=arguments.system,
        internal_tools=None if tools is None else tuple(name for name in tools if name != NO_TOOLS),
        connector_options_json=options_json,
        labels_of=lambda directory: [directory_label(directory)],
    )


def _policy(arguments: AcpArguments, configuration: Configuration) -> RequestPolicy:
    """Of the directory that the client starts us in; sessions may be elsewhere, with the same policy."""
    force = policy_in_force(arguments.policy, configuration, Path.cwd())
    for remark in force.remarks:
        complain(remark)
    if arguments.mode is None:
        return force.policy
    return force.policy.model_copy(update={"mode": PolicyMode(arguments.mode)})
