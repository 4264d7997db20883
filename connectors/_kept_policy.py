"""A delegated policy, kept at the peer's own question: what the policy decides is answered at once, the rest is asked.

No mode or option of these peers says a rule of ours to the letter: their patterns are prefixes, their modes wider or
narrower. What some of them have is a mode that asks before everything they do, and there the rule can be kept exactly.
So each says which of its tools may act without a question: a rule about such a tool is refused, or closes it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from harness.contract.delegation import Delegation, PolicyMode, PolicyRule, RequestPolicy
from harness.contract.requests import HostRequest, HostResponse, RequestKind
from harness.errors import NotSupported
from harness.policy import Place, Policy, PolicyCall, Verdict, answer_of, decide, rule_text
from harness.policy.globs import is_literal, text_fits


@dataclass(frozen=True, slots=True)
class Unasked:
    """What a peer may do without a question, in the mode in which it asks most."""

    looks: frozenset[str] = frozenset()
    """Tools of its own that only look."""
    acts: frozenset[str] = frozenset()
    """Other tools of its own."""
    of_sources: bool = True
    """Whether tools of delegated sources may act so."""

    @property
    def tools(self) -> frozenset[str]:
        return self.looks | self.acts


class KeptPolicy:
    """Answers for the host; without a policy it never does."""

    def __init__(self, policy: RequestPolicy | None, place: Place, connector: str) -> None:
        self._policy = None if policy is None else Policy(policy)
        self._place = place
        self._connector = connector

    def answer(self, request: HostRequest, arguments_json: str | None = None) -> HostResponse | None:
        """The policy's answer to an approval or a question; null where the host is to be asked.

        `arguments_json` are the arguments that the rules are about, where the peer words its question otherwise.
        """
        ruled = self._ruled(request, arguments_json)
        return None if ruled is None else ruled[1]

    def denial(self, request: HostRequest, arguments_json: str | None = None) -> HostResponse | None:
        """As `answer`, for a question that asks for more than the rules speak of: it can be denied, not allowed."""
        ruled = self._ruled(request, arguments_json)
        return ruled[1] if ruled is not None and ruled[0] == Verdict.DENY else None

    def _ruled(self, request: HostRequest, arguments_json: str | None) -> tuple[Verdict, HostResponse] | None:
        if self._policy is None or request.kind not in (RequestKind.APPROVAL, RequestKind.USER_QUESTION):
            return None
        changed = {} if arguments_json is None else {"arguments_json": arguments_json}
        call = PolicyCall.of(request.model_copy(update=changed), self._connector)
        ruling = decide(self._policy, call, self._place)
        response = answer_of(request, ruling)
        return None if response is None else (ruling.verdict, response)


def kept_policy(connector: str, delegation: Delegation, cwd: str, home: str | None) -> KeptPolicy:
    """For a peer that works in this directory of this machine."""
    return KeptPolicy(delegation.request_policy, Place(cwd, home, os.path.realpath), connector)


def open_tools(policy: RequestPolicy | None, internal_tools: Sequence[str]) -> list[str]:
    """The peer's own tools without those that a rule denies whatever their arguments: the model is not shown them."""
    denied = {rule.tool for rule in policy.deny if _is_whole(rule)} if policy is not None else set[str]()
    return [tool for tool in internal_tools if tool not in denied]


def check_kept(connector: str, delegation: Delegation, internal_tools: Sequence[str], unasked: Unasked) -> None:
    """Whether this peer, with these of its tools, keeps the policy to the letter.

    Raises:
        NotSupported: it does not; names the rule or the mode, and the tool that acts without a question.
    """
    policy = delegation.request_policy
    if policy is None:
        return
    silent = unasked.tools.intersection(open_tools(policy, internal_tools))
    sources = [source.name for source in delegation.tool_sources] if unasked.of_sources else []
    for rule in [*policy.deny, *policy.ask]:
        if rule.kind in (None, RequestKind.APPROVAL) and rule.connector in (None, connector, connector.split(":")[0]):
            acting = next((tool for tool in sorted(silent) if text_fits(rule.tool, tool, ignore_case=True)), None)
            _refuse(connector, f"the rule '{rule_text(rule)}'", acting, sources)
    if policy.mode == PolicyMode.READ_ONLY:
        _refuse(connector, f"the mode '{policy.mode}'", next(iter(sorted(silent - unasked.looks)), None), sources)
    if policy.mode == PolicyMode.DONT_ASK:
        allowed = {rule.tool for rule in policy.allow if _is_whole(rule)}
        _refuse(connector, f"the mode '{policy.mode}'", next(iter(sorted(silent - allowed)), None), sources)


def _refuse(connector: str, what: str, acting: str | None, sources: Sequence[str]) -> None:
    if acting is not None:
        text = f"its '{acting}' acts without asking; do not open that tool, or deny it whatever its arguments"
        raise NotSupported(f"connector '{connector}' cannot keep {what}: {text}")
    if sources:
        text = f"a tool of '{sources[0]}' may act without asking; let the host have that source"
        raise NotSupported(f"connector '{connector}' cannot keep {what}: {text}")


def _is_whole(rule: PolicyRule) -> bool:
    """A rule about a whole tool, by its full name."""
    return not rule.arguments and is_literal(rule.tool) and rule.kind in (None, RequestKind.APPROVAL)
