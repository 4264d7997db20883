"""Simulated delegation: what the peer runs and decides itself because the host handed it over (pure)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from connectors.fake.parts import ScriptedApproval, ScriptedCall
from harness.contract.delegation import Delegation, PolicyMode, PolicyRule, QuestionPolicy, RequestPolicy

Decision: TypeAlias = Literal["allow", "deny", "ask"]


def runs_itself(call: ScriptedCall, delegation: Delegation) -> bool:
    """Whether the call belongs to a source that was delegated."""
    return any(
        source.name == call.source and (source.tool_names is None or call.name in source.tool_names)
        for source in delegation.tool_sources
    )


def decision(approval: ScriptedApproval, policy: RequestPolicy | None) -> Decision:
    """Deny rules, ask rules, mode, allow rules; what nothing covers is asked."""
    if policy is None:
        return "ask"
    if _matches(policy.deny, approval):
        return "deny"
    if _matches(policy.ask, approval):
        return "ask"
    if policy.mode == PolicyMode.BYPASS:
        return "allow"
    if policy.mode == PolicyMode.READ_ONLY and not approval.read_only:
        return "deny"
    if _matches(policy.allow, approval):
        return "allow"
    return "deny" if policy.mode == PolicyMode.DONT_ASK else "ask"


def declines_questions(policy: RequestPolicy | None) -> bool:
    return policy is not None and policy.questions == QuestionPolicy.DECLINE


def _matches(rules: Sequence[PolicyRule], approval: ScriptedApproval) -> bool:
    arguments = json.loads(approval.arguments_text)
    return any(
        fnmatchcase(approval.tool, rule.tool)
        and rule.kind in (None, "approval")
        and rule.connector in (None, "fake")
        and all(fnmatchcase(str(arguments.get(one.name, "")), one.pattern) for one in rule.arguments)
        for rule in rules
    )
