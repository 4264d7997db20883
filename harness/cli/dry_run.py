"""`harness run --dry-run`: what would be started and which tools it would be offered. Starts nothing."""

from __future__ import annotations

import json

from harness.cli.run_plan import Plan
from harness.cli.running import with_connector
from harness.cli.tool_trial import readable
from harness.connector import DryRun
from harness.contract.value import JsonValue
from harness.errors import InvalidArgument
from harness.orchestrator.routing import PeerPlace
from harness.orchestrator.sources import decide_routes
from harness.orchestrator.tool_registry import ToolRegistry
from harness.registry import Registry


async def dry_run(plan: Plan) -> str:
    """A JSON object for people and scripts: connector, what it would start (`argv`), tools.

    Raises:
        HarnessError: a tool that cannot be described, options that the connector does not understand.
    """
    registry = Registry()
    if plan.earlier:
        raise InvalidArgument("--dry-run: shows what a new conversation would start, not an earlier one")
    plan = await with_connector(plan, registry)
    tools = (await ToolRegistry.of(plan.tools)).descriptors
    shown: dict[str, JsonValue] = {}
    if plan.url is not None:
        shown["url"] = plan.url
    if plan.options.connector is not None:
        shown["connector"] = plan.options.connector
    if plan.url is None:
        connector, options = registry.resolve(plan.options.model_copy(update={"tools": tools}))
        if isinstance(connector, DryRun):
            shown.update(connector.dry_run(options))
        if plan.servers:
            decisions = decide_routes(plan.servers, await connector.get_capabilities(options), PeerPlace.BESIDE_US)
            shown["sources"] = [{"source": one.source, "route": one.route, "reason": one.reason} for one in decisions]
    shown["tools"] = [readable(tool) for tool in tools]
    return json.dumps(shown, indent=2, ensure_ascii=False)
