"""The policy a peer may be given: derived from the host's, and never wider (pure).

Only forms whose meaning at the peer is known to be exactly ours are handed over, and only where no other rule of ours
speaks about the same tool. Everything else still arrives as a request, and the host decides.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from enum import StrEnum

from harness.contract.delegation import PolicyMode, PolicyRule, RequestPolicy
from harness.contract.requests import RequestKind
from harness.policy import paths, shell
from harness.policy.call import Place, PolicyCall
from harness.policy.decision import Policy, Verdict, decide
from harness.policy.globs import is_literal, text_fits
from harness.policy.shapes import Sort, shape_of


class Form(StrEnum):
    """A form of rule that a peer may know exactly."""

    TOOL = "tool"
    """A whole tool, by its full name."""
    COMMAND = "command"
    """One command, to the last character."""
    PATH = "path"
    """Everything below a directory inside the working directory, links followed."""
    MODE = "mode"


DELEGATED_FORMS = frozenset(Form)


def delegated(
    policy: Policy, *, connector: str | None, cwd: str, forms: Collection[Form] = DELEGATED_FORMS
) -> RequestPolicy:
    """The part of the policy that this connector's peer can keep to the letter, knowing these forms."""
    rules = policy.rules
    mine = [rule for rule in rules.allow if rule.kind in (None, RequestKind.APPROVAL) and _is_for(rule, connector)]
    allow = [rule for rule in mine if _form(rule) in forms and _is_exact(rule, policy, cwd)]
    return RequestPolicy(
        mode=_mode(policy, forms, keeps_all=len(allow) == len(rules.allow)),
        deny=[_plain(rule) for rule in rules.deny if _form(rule) in forms and _is_for(rule, connector)],
        ask=[_plain(rule) for rule in rules.ask if _form(rule) in forms and _is_for(rule, connector)],
        allow=[_plain(rule) for rule in allow],
        questions=rules.questions,
    )


def narrowed(asked: RequestPolicy, house: Policy, *, connector: str | None, cwd: str) -> RequestPolicy:
    """What is left of a policy that a caller wants to hand to the peer where the house has one of its own.

    What the peer decides by itself never comes by the house, so nothing is handed over that the house would refuse, or
    that its rules or hooks may speak about.
    """
    rules = house.rules
    is_strict = rules.mode in (PolicyMode.READ_ONLY, PolicyMode.DONT_ASK)
    allow, mode = ([], _refusing(asked.mode)) if is_strict else (asked.allow, asked.mode)
    both = asked.model_copy(
        update={"mode": mode, "allow": allow, "deny": [*asked.deny, *rules.deny], "ask": [*asked.ask, *rules.ask]}
    )
    return delegated(Policy(both, house.hooks), connector=connector, cwd=cwd)


def _refusing(mode: PolicyMode | str) -> PolicyMode:
    return PolicyMode(mode) if mode in (PolicyMode.READ_ONLY, PolicyMode.DONT_ASK) else PolicyMode.DEFAULT


def _form(rule: PolicyRule) -> Form | None:
    """Null for everything that a peer might read differently."""
    if not is_literal(rule.tool) or rule.kind not in (None, RequestKind.APPROVAL) or len(rule.arguments) > 1:
        return None
    if not rule.arguments:
        return Form.TOOL
    shape = shape_of(rule.tool)
    one = rule.arguments[0]
    if shape is None or shape.argument != one.name:
        return None
    if shape.sort == Sort.COMMAND and is_literal(one.pattern) and shell.is_plain(one.pattern):
        return Form.COMMAND
    if shape.sort == Sort.PATH and shape.default is None and paths.inside_prefix(one.pattern) is not None:
        return Form.PATH
    return None


def _is_exact(rule: PolicyRule, policy: Policy, cwd: str) -> bool:
    """Whether allowing this at the peer allows nothing that the host would ask about or deny."""
    if policy.hooks or policy.rules.mode in (PolicyMode.READ_ONLY,):
        return False  # a hook, or a look at what the call does, can only happen here
    refusing = [*policy.rules.deny, *policy.rules.ask]
    if any(_may_speak_about(other, rule.tool) for other in refusing):
        return False
    if _form(rule) != Form.COMMAND:
        return True
    one = rule.arguments[0]
    call = PolicyCall(rule.tool, json.dumps({one.name: one.pattern}))
    return decide(policy, call, Place(cwd)).verdict == Verdict.ALLOW


def _may_speak_about(rule: PolicyRule, tool: str) -> bool:
    return text_fits(rule.tool, tool, ignore_case=True) and rule.kind in (None, RequestKind.APPROVAL)


def _mode(policy: Policy, forms: Collection[Form], *, keeps_all: bool) -> PolicyMode:
    """A mode that refuses is kept; one that allows only where nothing of ours speaks against it."""
    mode = policy.rules.mode
    has_objections = bool(policy.hooks or policy.rules.deny or policy.rules.ask)
    if Form.MODE not in forms:
        return PolicyMode.DEFAULT
    if mode == PolicyMode.READ_ONLY:
        return PolicyMode.READ_ONLY
    if mode in (PolicyMode.BYPASS, PolicyMode.ACCEPT_EDITS) and not has_objections:
        return PolicyMode(mode)
    # the peer would deny what only our other rules allow
    if mode == PolicyMode.DONT_ASK and keeps_all and not policy.hooks:
        return PolicyMode.DONT_ASK
    return PolicyMode.DEFAULT


def _is_for(rule: PolicyRule, connector: str | None) -> bool:
    name = (connector or "").partition(":")[0]
    return rule.connector in (None, connector, name)


def _plain(rule: PolicyRule) -> PolicyRule:
    return rule.model_copy(update={"connector": None, "kind": None})
