"""Who decides what an `ask` raises: a person at the client where it has one, else nobody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from harness.contract.requests import HostRequest
from harness.errors import InvalidArgument
from harness.orchestrator.approvals import Allowing, Approver, Decision, Denying, declined, refuses
from harness.orchestrator.policy_desk import ALWAYS
from harness.orchestrator.refusals import Refusal, RefusalKind
from harness.surfaces.mcp_server.forms import Form, form_of

Elicit: TypeAlias = Callable[[Form], Awaitable[types.ElicitResult]]
"""Shows a form to the person at the client. May be cancelled: the request was resolved otherwise."""

_REMEDY = "Whoever runs the server can allow it beforehand, by --policy or --approve."
_NOBODY = f"Nobody is there to ask: this MCP client does not offer elicitation. {_REMEDY}"
_NO_ANSWER = f"The client's form was closed without an answer. {_REMEDY}"
_UNTIL_THE_END = "always, until this answer is complete"


class ApprovalChoice(StrEnum):
    """How a server answers what its policy leaves open."""

    ASK = "ask"
    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Client:
    """What is known of the client that sent a request."""

    protocol_version: str
    capabilities: types.ClientCapabilities | None

    @property
    def has_person(self) -> bool:
        """It declared that it shows forms; an empty declaration means forms."""
        declared = self.capabilities.elicitation if self.capabilities else None
        return declared is not None and (declared.form is not None or declared.url is None)


def approver_for(choice: ApprovalChoice, client: Client, elicit: Elicit) -> Approver:
    match choice:
        case ApprovalChoice.ALLOW:
            return Allowing()
        case ApprovalChoice.DENY:
            return Denying("The server denies whatever its policy does not allow.", RefusalKind.DENIED)
        case ApprovalChoice.ASK if client.has_person:
            return Elicited(elicit, client.protocol_version)
        case ApprovalChoice.ASK:
            return Denying(_NOBODY)


class Elicited:
    """Has the client ask its person, one thing at a time."""

    def __init__(self, elicit: Elicit, protocol_version: str) -> None:
        self._elicit = elicit
        self._protocol_version = protocol_version
        self._one_at_a_time = anyio.Lock()

    async def decide(self, request: HostRequest) -> Decision | None:
        form = form_of(_as_it_holds(request), self._protocol_version)
        if form is None:
            return _unasked(request, "A secret cannot be asked for through an MCP client.")
        async with self._one_at_a_time:
            try:
                result = await self._elicit(form)
            except MCPError as error:
                return _unasked(request, f"The client could not ask: {error.message}")
            except ValidationError:
                return _unasked(request, "The client's answer was none that the protocol knows.")
        if result.action == "decline":
            return declined(request, Refusal(RefusalKind.REJECTED, "A person rejected this."))
        if result.action == "cancel":  # what a client says, too, that shows forms to nobody at the moment
            return _unasked(request, _NO_ANSWER)
        try:
            response = form.filled_in(result.content)
        except InvalidArgument as error:
            return _unasked(request, f"The answer was not usable: {error.message}.")
        if not refuses(request, response):
            return Decision(response)
        return Decision(response, Refusal(RefusalKind.REJECTED, response.reason or "A person rejected this."))


def _as_it_holds(request: HostRequest) -> HostRequest:
    """What this host remembers, it remembers for one `ask`."""
    options = [
        option.model_copy(update={"label": _UNTIL_THE_END}) if option.id == ALWAYS else option
        for option in request.options
    ]
    return request.model_copy(update={"options": options})


def _unasked(request: HostRequest, why: str) -> Decision:
    return declined(request, Refusal(RefusalKind.APPROVAL_UNAVAILABLE, why))
