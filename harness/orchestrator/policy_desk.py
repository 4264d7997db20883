"""The host's policy at work: it decides what it can and has a person decide the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import anyio

from harness.contract.requests import (
    HostRequest,
    OptionKind,
    RequestKind,
    RequestOption,
)
from harness.contract.tools import ToolCall
from harness.orchestrator.approvals import Approver, Decision, declined
from harness.orchestrator.refusals import Refusal, RefusalKind
from harness.orchestrator.tool_provider import ToolOutcome, failure
from harness.policy import Place, Policy, PolicyCall, Ruling, Verdict, answer_of, call_text, decide, main_argument

ALWAYS = "always_in_this_conversation"
"""The option that this host adds where the peer has none that lasts."""


@runtime_checkable
class Elsewhere(Protocol):
    """An LLM whose files may be on another machine."""

    @property
    def is_elsewhere(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Desk:
    """What a policy needs to decide: who is asked, from which connector calls come, and where their paths lead."""

    policy: Policy
    approver: Approver
    connector: str | None
    place: Place
    approval_seconds: float | None = None
    """How long a person may take over a call of the host's own tools; other approvals have their own deadline."""


class PolicyDesk:
    """One conversation's: it remembers what a person allowed for all of it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._remembered: set[tuple[str, str | None]] = set()

    def use(self, policy: Policy) -> None:
        """From now on this policy decides; what a person allowed for the conversation stays allowed."""
        self._desk = replace(self._desk, policy=policy)

    async def decide(self, request: HostRequest) -> Decision | None:
        """The answer to an approval or a question; null leaves it to another host."""
        call = PolicyCall.of(request, self._desk.connector)
        ruling = self._ruling(call)
        answer = answer_of(request, ruling)
        if answer is not None:
            denied = ruling.verdict == Verdict.DENY
            return Decision(answer, Refusal(RefusalKind.DENIED, ruling.reason) if denied else None)
        if ruling.verdict == Verdict.DENY:
            return declined(request, Refusal(RefusalKind.DENIED, ruling.reason))
        if request.kind != RequestKind.APPROVAL:
            return await self._desk.approver.decide(request)
        return await self._ask(_as_changed(request, ruling), call, ruling)

    async def gate(self, request: HostRequest, call: ToolCall, *, read_only: bool) -> ToolCall | ToolOutcome:
        """The call that may run, with the arguments it may run with; or the error result in place of running it."""
        looked_at = PolicyCall(
            call.tool_name, call.arguments_json, RequestKind.TOOL_CALL, self._desk.connector, read_only=read_only
        )
        ruling = self._ruling(looked_at)
        if ruling.verdict == Verdict.DENY:
            return failure(f"The tool '{call.tool_name}' was not run: {ruling.reason}.", RefusalKind.DENIED)
        arguments_json = ruling.changed_arguments_json or call.arguments_json
        if ruling.verdict == Verdict.ALLOW:
            return call.model_copy(update={"arguments_json": arguments_json})
        asked = _approval_of(request, call.tool_name, arguments_json, ruling)
        decision: Decision | None = None
        with anyio.move_on_after(self._desk.approval_seconds) as limit:
            decision = await self._ask(asked, looked_at, ruling)
        if decision is None:
            kind = RefusalKind.APPROVAL_TIMEOUT if limit.cancelled_caught else RefusalKind.APPROVAL_UNAVAILABLE
            why = "nobody gave leave in time" if limit.cancelled_caught else "nobody here can give leave"
            return failure(f"The tool '{call.tool_name}' was not run: {why} ({ruling.reason}).", kind)
        if decision.refusal is not None:
            return failure(f"The tool '{call.tool_name}' was not run: {decision.refusal.text}", decision.refusal.kind)
        given = decision.response.updated_arguments_json
        return call.model_copy(update={"arguments_json": given or arguments_json})

    def _ruling(self, call: PolicyCall) -> Ruling:
        ruling = decide(self._desk.policy, call, self._desk.place)
        if ruling.verdict == Verdict.ASK and self._key(call, ruling) in self._remembered:
            return replace(ruling, verdict=Verdict.ALLOW, reason="a person allowed it for this conversation")
        return ruling

    async def _ask(self, request: HostRequest, call: PolicyCall, ruling: Ruling) -> Decision | None:
        """Puts it to the approver; where the peer offers nothing that lasts, this host does."""
        once = next((option for option in request.options if option.kind == OptionKind.ALLOW_ONCE), None)
        lasts = any(option.kind == OptionKind.ALLOW_ALWAYS for option in request.options)
        if once is None or lasts:
            return _with_changes(await self._desk.approver.decide(request), ruling)
        key = self._key(call, ruling)
        what = f"every call of '{call.tool}'" if key[1] is None else call_text(call)
        always = RequestOption(
            id=ALWAYS, kind=OptionKind.ALLOW_ALWAYS, label="always in this conversation", description=what
        )
        offered = request.model_copy(update={"options": [*request.options, always]})
        decision = await self._desk.approver.decide(offered)
        if decision is not None and offered.option(decision.response.selected_option) == always:
            self._remembered.add(key)
            response = decision.response.model_copy(update={"selected_option": once.id})
            decision = replace(decision, response=response)
        return _with_changes(decision, ruling)

    def _key(self, call: PolicyCall, ruling: Ruling) -> tuple[str, str | None]:
        """What "always" is about: this very command, file or address; of other tools every call."""
        arguments_json = ruling.changed_arguments_json or call.arguments_json
        return call.tool, main_argument(replace(call, arguments_json=arguments_json))


def _with_changes(decision: Decision | None, ruling: Ruling) -> Decision | None:
    """What a hook made of the arguments, unless the person made something else of them."""
    changed = ruling.changed_arguments_json
    if decision is None or changed is None or decision.refusal is not None:
        return decision
    given = decision.response.updated_arguments_json or changed
    return replace(decision, response=decision.response.model_copy(update={"updated_arguments_json": given}))


def _as_changed(request: HostRequest, ruling: Ruling) -> HostRequest:
    """A person sees what would run, not what was asked for."""
    if ruling.changed_arguments_json is None:
        return request
    return request.model_copy(update={"arguments_json": ruling.changed_arguments_json})


def _approval_of(request: HostRequest, tool: str, arguments_json: str, ruling: Ruling) -> HostRequest:
    """A call of our own tool, as the approval that a person is asked for."""
    options = [
        RequestOption(id=kind.value, kind=kind, label=label)
        for kind, label in ((OptionKind.ALLOW_ONCE, "run it once"), (OptionKind.DENY, "do not run it"))
    ]
    return HostRequest(
        request_id=request.request_id,
        kind=RequestKind.APPROVAL,
        call_id=request.call_id,
        tool_name=tool,
        arguments_json=arguments_json,
        options=options,
        title=f"The model wants to run your tool '{tool}'",
        description=ruling.reason,
        read_only=request.read_only,
        parent_call_id=request.parent_call_id,
        opened_at=request.opened_at,
    )
