"""The MCP server: which tools there are, and who answers a call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from harness.contract.options import ConversationOptions
from harness.contract.value import JsonValue
from harness.errors import ConnectorUnavailable, HarnessError, Internal
from harness.surfaces.app import package_version
from harness.surfaces.call import OwnedLLM, SharedHarness
from harness.surfaces.mcp_server.arguments import Arguments, NoArguments
from harness.surfaces.mcp_server.ask import ASK, AskArguments, answer, ask_tool
from harness.surfaces.mcp_server.forms import Form
from harness.surfaces.mcp_server.operations import OPERATIONS, Operation
from harness.surfaces.mcp_server.people import ApprovalChoice, Client, Elicit, approver_for
from harness.surfaces.mcp_server.progress import Progress
from harness.surfaces.mcp_server.rounds import CallResult, Rounds
from harness.surfaces.mcp_server.tools import done_result, error_result, fault_result, value_result
from harness.surfaces.tokens import Token, token_of
from harness.surfaces.waiters import Waiters
from harness.wire.bodies import ConnectorInfo, ConnectorList
from harness.wire.hops import HOPS_HEADER, read_hops
from harness.wire.json_text import read_json

NAME = "level2-harness"
_INSTRUCTIONS = (
    "'ask' hands a message to an agent and gives its answer; go on with the 'conversation_id' it names. "
    "The other tools are for programs that run the agent's tools themselves."
)
_CONNECTORS = "list_connectors"

Context: TypeAlias = ServerRequestContext[Any, Any]
A = TypeVar("A", bound=Arguments)


class ToolChoice(StrEnum):
    """Which tools clients see."""

    ALL = "all"
    ASK = "ask"
    OPERATIONS = "operations"


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server gives its clients, and how."""

    connectors: tuple[str, ...]
    tools: ToolChoice = ToolChoice.ALL
    approve: ApprovalChoice = ApprovalChoice.ASK
    defaults: ConversationOptions = field(default_factory=ConversationOptions)
    """Of conversations that `ask` begins."""


def build_server(
    harness: SharedHarness, offer: Offer, group: TaskGroup, waiters: Waiters, owner: Token | None = None
) -> Server[Any]:
    """The server for one transport; asks that outlive a call run in `group`, and calls end when `waiters` settle.

    `owner` is whose conversations these are where requests bring no token.
    """
    desk = _Desk(harness, offer, Rounds(group), waiters, owner)
    return Server(
        NAME,
        version=package_version(),
        instructions=_INSTRUCTIONS,
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,
        get_tool_input_schema=desk.input_schema,
    )


class _Desk:
    def __init__(
        self, harness: SharedHarness, offer: Offer, rounds: Rounds, waiters: Waiters, owner: Token | None
    ) -> None:
        self._harness = harness
        self._offer = offer
        self._rounds = rounds
        self._waiters = waiters
        self._owner = owner
        has_operations = offer.tools != ToolChoice.ASK
        self._operations: dict[str, Operation] = {one.name: one for one in OPERATIONS} if has_operations else {}
        if has_operations:
            self._operations[_CONNECTORS] = _connectors_of(offer.connectors)
        asks = [] if offer.tools == ToolChoice.OPERATIONS else [ask_tool(list(offer.connectors))]
        self._tools = [*asks, *(one.tool() for one in self._operations.values())]
        self._schemas = {tool.name: tool.input_schema for tool in self._tools}

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        return self._schemas.get(name)

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> CallResult:
        """What the caller did wrong, or what broke, is a result that the model may read; a tool nobody has is not."""
        if params.name not in self._schemas:
            known = ", ".join(self._schemas)
            raise MCPError(types.INVALID_PARAMS, f"unknown tool '{params.name}'; known: {known}")
        result: CallResult | None = None
        with anyio.CancelScope() as scope, self._waiters.ending(scope):
            result = await self._answer(ctx, params)
        if result is None:
            return error_result(ConnectorUnavailable("this server is stopping", reason="stopping"))
        return result

    async def _answer(self, ctx: Context, params: types.CallToolRequestParams) -> CallResult:
        try:
            if params.name == ASK:
                return await self._ask(ctx, params)
            operation = self._operations[params.name]
            value = await operation.perform(self._llm(ctx), _read(operation.takes, params.arguments))
            return done_result() if value is None else value_result(value)
        except HarnessError as error:
            return error_result(error)
        except MCPError:
            raise
        except Exception:
            return fault_result(params.name)

    async def _ask(self, ctx: Context, params: types.CallToolRequestParams) -> CallResult:
        given = _read(AskArguments, params.arguments)
        llm, client = self._llm(ctx), Client(ctx.protocol_version, ctx.session.client_capabilities)
        report = partial(_report, ctx)

        async def work(elicit: Elicit, progress: Progress) -> types.CallToolResult:
            approver = approver_for(self._offer.approve, client, elicit)
            return await answer(llm, given, self._offer.defaults, approver, progress)

        asks_a_person = self._offer.approve == ApprovalChoice.ASK and client.has_person
        if asks_a_person and client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return await self._rounds.call(self._token(ctx).owner, params, work, report)
        return await work(partial(_elicit, ctx), Progress(report))

    def _llm(self, ctx: Context) -> OwnedLLM:
        token = self._token(ctx)
        return self._harness.for_owner(token.owner, token.rights, _hops(ctx))

    def _token(self, ctx: Context) -> Token:
        http_request: object = ctx.request
        if isinstance(http_request, Request):
            return token_of(cast("Request[Any]", http_request))
        if self._owner is None:
            raise Internal("a request without a token on a server without an owner")
        return self._owner


def _read(kind: type[A], arguments: Mapping[str, JsonValue] | None) -> A:
    return read_json(kind, json.dumps(arguments or {}).encode(), "the arguments")


def _connectors_of(names: tuple[str, ...]) -> Operation:
    known = ConnectorList(
        connectors=[ConnectorInfo(name=name, is_default=number == 0) for number, name in enumerate(names)]
    )

    async def list_connectors(llm: OwnedLLM, given: NoArguments) -> ConnectorList:
        return known

    return Operation(_CONNECTORS, "The agents of this server.", NoArguments, list_connectors, ConnectorList)


def _hops(ctx: Context) -> Sequence[str]:
    """The harnesses that this request has come through; over stdin nobody tells."""
    http_request: object = ctx.request
    if not isinstance(http_request, Request):
        return ()
    return read_hops(cast("Request[Any]", http_request).headers.get(HOPS_HEADER))


async def _report(ctx: Context, count: int, message: str) -> None:
    await ctx.session.report_progress(count, message=message)


async def _elicit(ctx: Context, form: Form) -> types.ElicitResult:
    return await ctx.session.elicit_form(form.message, form.schema, ctx.request_id)
