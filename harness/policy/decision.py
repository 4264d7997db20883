"""The decision on one call: hooks, deny rules, ask rules, the mode, allow rules, and then somebody is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

from harness.contract.delegation import PolicyMode, PolicyRule, QuestionPolicy, RequestPolicy
from harness.contract.requests import RequestKind
from harness.policy import paths
from harness.policy.call import Place, PolicyCall
from harness.policy.rules import allows, concerns
from harness.policy.shapes import shape_of
from harness.policy.text_form import rule_text

_NEVER_EDITED_UNASKED = frozenset(
    {".git", ".harness", ".claude", ".codex", ".gemini", ".vscode", ".idea", ".github", ".envrc", ".mcp.json"}
)
"""What other programs execute or obey: `accept_edits` does not cover it."""


class Verdict(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


class RulingBy(StrEnum):
    HOOK = "hook"
    DENY_RULE = "deny_rule"
    ASK_RULE = "ask_rule"
    MODE = "mode"
    ALLOW_RULE = "allow_rule"
    NOTHING = "nothing"
    """No rule speaks about it."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the policy says, who in it says so, and why in one sentence."""

    verdict: Verdict
    by: RulingBy
    reason: str
    rule: PolicyRule | None = None
    changed_arguments_json: str | None = None
    """What a hook made of the arguments: the call runs with these."""


@dataclass(frozen=True, slots=True)
class Denied:
    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    reason: str


@dataclass(frozen=True, slots=True)
class Changed:
    """Other arguments; hooks after this one and all rules see them."""

    arguments_json: str


@dataclass(frozen=True, slots=True)
class Allowed:
    """Counts as an allow rule: a deny rule, an ask rule or another hook's doubt is stronger."""

    reason: str = "a hook allows it"


Hook: TypeAlias = Callable[[PolicyCall], Denied | Asked | Changed | Allowed | None]
"""Looks at a call before the rules do; null is no opinion. One that raises denies."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The host's policy: rules, and hooks before them."""

    rules: RequestPolicy = field(default_factory=RequestPolicy)
    hooks: Sequence[Hook] = ()


def decide(policy: Policy, call: PolicyCall, place: Place) -> Ruling:
    """The ruling on one call. Pure: only `place.resolve` may look at the disk.

    A caller's own tools (`tool_call`) were given to be run: where nothing speaks about them they are allowed.
    """
    heard = _hear(policy.hooks, call)
    if isinstance(heard.last, Denied):
        return Ruling(Verdict.DENY, RulingBy.HOOK, heard.last.reason)
    ruling = _by_rules(policy.rules, heard.call, place, heard.last)
    changed = heard.call.arguments_json if heard.call is not call else None
    return replace(ruling, changed_arguments_json=changed) if ruling.verdict != Verdict.DENY else ruling


@dataclass(frozen=True, slots=True)
class _Heard:
    call: PolicyCall
    last: Denied | Asked | Allowed | None = None


def _hear(hooks: Sequence[Hook], call: PolicyCall) -> _Heard:
    """What all hooks together say: a denial ends it, a doubt outweighs an approval."""
    opinion: Asked | Allowed | None = None
    for hook in hooks:
        try:
            said = hook(call)
        except Exception as error:  # a fence that is broken is no open door
            said = Denied(f"a policy hook failed: {type(error).__name__}: {error}")
        match said:
            case Denied():
                return _Heard(call, said)
            case Changed(arguments_json=arguments_json):
                call = replace(call, arguments_json=arguments_json)
            case Asked():
                opinion = said
            case Allowed() if opinion is None:
                opinion = said
            case _:
                pass
    return _Heard(call, opinion)


def _by_rules(rules: RequestPolicy, call: PolicyCall, place: Place, heard: Denied | Asked | Allowed | None) -> Ruling:
    if call.kind == RequestKind.USER_QUESTION:
        return _on_question(rules)
    for rule in rules.deny:
        if concerns(rule, call, place):
            return Ruling(Verdict.DENY, RulingBy.DENY_RULE, _told("denied", rule), rule)
    if isinstance(heard, Asked):
        return Ruling(Verdict.ASK, RulingBy.HOOK, heard.reason)
    for rule in rules.ask:
        if concerns(rule, call, place):
            return Ruling(Verdict.ASK, RulingBy.ASK_RULE, _told("to be asked", rule), rule)
    by_mode = _by_mode(rules.mode, call, place)
    if by_mode is not None:
        return by_mode
    if isinstance(heard, Allowed):
        return Ruling(Verdict.ALLOW, RulingBy.HOOK, heard.reason)
    for rule in rules.allow:
        if allows(rule, call, place):
            return Ruling(Verdict.ALLOW, RulingBy.ALLOW_RULE, _told("allowed", rule), rule)
    if rules.mode == PolicyMode.DONT_ASK:
        return Ruling(Verdict.DENY, RulingBy.MODE, "no rule allows it, and the mode 'dont_ask' asks nobody")
    if call.kind == RequestKind.TOOL_CALL:
        return Ruling(Verdict.ALLOW, RulingBy.NOTHING, "a tool of the caller's own, and no rule speaks about it")
    return Ruling(Verdict.ASK, RulingBy.NOTHING, "no rule speaks about it")


def _by_mode(mode: PolicyMode | str, call: PolicyCall, place: Place) -> Ruling | None:
    if mode == PolicyMode.BYPASS:
        return Ruling(Verdict.ALLOW, RulingBy.MODE, "the mode 'bypass' allows everything that no rule refuses")
    if mode == PolicyMode.READ_ONLY and call.read_only is not True:
        return Ruling(Verdict.DENY, RulingBy.MODE, "the mode 'read_only' allows nothing that may change something")
    if mode == PolicyMode.ACCEPT_EDITS and _is_ordinary_edit(call, place):
        return Ruling(Verdict.ALLOW, RulingBy.MODE, "the mode 'accept_edits' allows edits in the working directory")
    return None


def _is_ordinary_edit(call: PolicyCall, place: Place) -> bool:
    shape = shape_of(call.tool)
    if call.kind != RequestKind.APPROVAL or shape is None or not shape.is_edit or place.resolve is None:
        return False
    path = (call.arguments or {}).get(shape.argument)
    if not isinstance(path, str) or not paths.path_is_surely("./**", path, place):
        return False
    inside = place.resolve(place.cwd)
    below = {name for real in paths.leads_to(path, place) for name in paths.names_in(real.removeprefix(inside))}
    return not below & _NEVER_EDITED_UNASKED


def _on_question(rules: RequestPolicy) -> Ruling:
    """Nobody answers a question for the person it is put to; a policy may only decline."""
    if rules.questions == QuestionPolicy.DECLINE:
        return Ruling(Verdict.DENY, RulingBy.MODE, "the policy declines questions")
    return Ruling(Verdict.ASK, RulingBy.NOTHING, "a question is for a person")


def _told(verb: str, rule: PolicyRule) -> str:
    reason = f": {rule.reason}" if rule.reason else ""
    return f"{verb} by the rule {rule_text(rule)}{reason}"
