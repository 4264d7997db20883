"""Who in a policy has the last word: hooks, deny rules, ask rules, the mode, allow rules, then somebody is asked."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from contract_tests.requirements import requirement
from harness.contract import HostRequest, OptionKind, PolicyMode, RequestKind, RequestOption, RequestPolicy
from harness.policy import (
    Allowed,
    Asked,
    Changed,
    Denied,
    Hook,
    Place,
    Policy,
    PolicyCall,
    Ruling,
    RulingBy,
    Verdict,
    answer_of,
    call_of_text,
    decide,
    rule_of_text,
)

PLACE = Place("/home/me/project", home="/home/me", resolve=lambda path: path)
LS = "Bash(ls)"


def rules(
    *, deny: Sequence[str] = (), ask: Sequence[str] = (), allow: Sequence[str] = (), **fields: Any
) -> RequestPolicy:
    lists = {"deny": deny, "ask": ask, "allow": allow}
    return RequestPolicy(**{name: [rule_of_text(text) for text in texts] for name, texts in lists.items()}, **fields)


def ruled(policy: RequestPolicy, call: PolicyCall | str, *hooks: Hook) -> Ruling:
    looked_at = call_of_text(call) if isinstance(call, str) else call
    return decide(Policy(policy, hooks), looked_at, PLACE)


@requirement("policy:order")
@pytest.mark.parametrize(
    ("policy", "verdict", "by"),
    [
        (rules(deny=["Bash"], ask=["Bash"], allow=["Bash"], mode="bypass"), Verdict.DENY, RulingBy.DENY_RULE),
        (rules(ask=["Bash"], allow=["Bash"], mode="bypass"), Verdict.ASK, RulingBy.ASK_RULE),
        (rules(allow=["Bash"], mode="read_only"), Verdict.DENY, RulingBy.MODE),
        (rules(mode="bypass"), Verdict.ALLOW, RulingBy.MODE),
        (rules(allow=["Bash"]), Verdict.ALLOW, RulingBy.ALLOW_RULE),
        (rules(mode="dont_ask"), Verdict.DENY, RulingBy.MODE),
        (rules(allow=["Bash"], mode="dont_ask"), Verdict.ALLOW, RulingBy.ALLOW_RULE),
        (rules(), Verdict.ASK, RulingBy.NOTHING),
        (rules(mode="some_mode_of_tomorrow"), Verdict.ASK, RulingBy.NOTHING),
    ],
)
def test_first_that_speaks_decides(policy: RequestPolicy, verdict: Verdict, by: RulingBy) -> None:
    ruling = ruled(policy, LS)
    assert (ruling.verdict, ruling.by) == (verdict, by)
    assert ruling.reason


@requirement("policy:order")
def test_reason_names_the_rule_and_its_own_reason() -> None:
    policy = RequestPolicy(deny=[rule_of_text("Bash(rm *)").model_copy(update={"reason": "keep the data"})])
    assert ruled(policy, "Bash(rm x)").reason == "denied by the rule Bash(rm *): keep the data"


@requirement("policy:order")
def test_callers_own_tools_run_unless_something_speaks_about_them() -> None:
    call = PolicyCall("book", kind=RequestKind.TOOL_CALL)
    assert ruled(rules(), call).verdict == Verdict.ALLOW
    assert ruled(rules(deny=["book"]), call).verdict == Verdict.DENY
    assert ruled(rules(ask=["b*"]), call).verdict == Verdict.ASK
    assert ruled(rules(mode="dont_ask"), call).verdict == Verdict.DENY
    assert ruled(rules(mode="read_only"), call).verdict == Verdict.DENY
    assert ruled(rules(mode="read_only"), PolicyCall("look", kind="tool_call", read_only=True)).verdict == Verdict.ALLOW


@requirement("policy:order")
def test_rules_are_limited_by_kind_and_connector() -> None:
    one = rule_of_text("Bash").model_copy(update={"kind": "approval", "connector": "claude"})
    policy = RequestPolicy(allow=[one])
    assert ruled(policy, PolicyCall("Bash", connector="claude")).verdict == Verdict.ALLOW
    assert ruled(policy, PolicyCall("Bash", connector="claude:bridge")).verdict == Verdict.ALLOW
    assert ruled(policy, PolicyCall("Bash", connector="codex")).verdict == Verdict.ASK
    assert ruled(policy, PolicyCall("Bash")).verdict == Verdict.ASK


@requirement("policy:hooks")
@pytest.mark.parametrize(
    ("policy", "hooks", "verdict", "by"),
    [
        (rules(allow=["Bash"]), [lambda call: Denied("no")], Verdict.DENY, RulingBy.HOOK),
        (rules(allow=["Bash"]), [lambda call: Asked("sure?")], Verdict.ASK, RulingBy.HOOK),
        (rules(mode="bypass"), [lambda call: Asked("sure?")], Verdict.ASK, RulingBy.HOOK),
        (rules(), [lambda call: Allowed()], Verdict.ALLOW, RulingBy.HOOK),
        (rules(deny=["Bash"]), [lambda call: Allowed()], Verdict.DENY, RulingBy.DENY_RULE),
        (rules(ask=["Bash"]), [lambda call: Allowed()], Verdict.ASK, RulingBy.ASK_RULE),
        (rules(mode="read_only"), [lambda call: Allowed()], Verdict.DENY, RulingBy.MODE),
        (rules(), [lambda call: Asked("sure?"), lambda call: Allowed()], Verdict.ASK, RulingBy.HOOK),
        (rules(), [lambda call: Allowed(), lambda call: Denied("no")], Verdict.DENY, RulingBy.HOOK),
        (rules(), [lambda call: None], Verdict.ASK, RulingBy.NOTHING),
    ],
)
def test_hooks_refuse_or_help_and_never_overrule(
    policy: RequestPolicy, hooks: list[Hook], verdict: Verdict, by: RulingBy
) -> None:
    ruling = ruled(policy, LS, *hooks)
    assert (ruling.verdict, ruling.by) == (verdict, by)


@requirement("policy:hooks")
def test_rules_see_what_a_hook_made_of_the_arguments() -> None:
    changed = json.dumps({"command": "ls -l"})
    policy = rules(allow=["Bash(ls -l)"], deny=["Bash(ls)"])
    ruling = ruled(policy, LS, lambda call: Changed(changed))
    assert (ruling.verdict, ruling.changed_arguments_json) == (Verdict.ALLOW, changed)
    worse = ruled(rules(allow=["Bash(ls)"]), LS, lambda call: Changed('{"command": "rm x"}'))
    assert worse.verdict == Verdict.ASK


@requirement("policy:hooks")
def test_hook_that_fails_denies() -> None:
    def broken(call: PolicyCall) -> None:
        raise KeyError("city")

    ruling = ruled(rules(mode="bypass"), LS, broken)
    assert (ruling.verdict, ruling.by) == (Verdict.DENY, RulingBy.HOOK)
    assert "KeyError" in ruling.reason


@requirement("policy:order", "R-D11")
def test_no_policy_answers_a_question() -> None:
    question = PolicyCall("", kind=RequestKind.USER_QUESTION)
    for mode in PolicyMode:
        assert ruled(rules(mode=mode, allow=["*"]), question, lambda call: Allowed()).verdict == Verdict.ASK
    assert ruled(rules(mode="bypass", questions="decline"), question).verdict == Verdict.DENY


@requirement("policy:order")
def test_answer_allows_once_or_refuses_mildly_with_the_reason() -> None:
    options = [RequestOption(id=f"id-{kind.value}", kind=kind) for kind in OptionKind]
    request = HostRequest(request_id="a1", kind=RequestKind.APPROVAL, tool_name="Bash", options=options)
    allowed = answer_of(request, ruled(rules(allow=["Bash"]), LS))
    denied = answer_of(request, ruled(rules(deny=["Bash"]), LS))
    assert allowed is not None and denied is not None
    assert (allowed.selected_option, allowed.reason) == ("id-allow_once", None)
    assert (denied.selected_option, denied.reason) == ("id-deny", "denied by the rule Bash")
    assert answer_of(request, ruled(rules(), LS)) is None


@requirement("policy:order")
def test_no_answer_where_the_peer_offers_nothing_that_fits() -> None:
    always = RequestOption(id="x", kind=OptionKind.ALLOW_ALWAYS)
    request = HostRequest(request_id="a1", kind=RequestKind.APPROVAL, tool_name="Bash", options=[always])
    assert answer_of(request, ruled(rules(allow=["Bash"]), LS)) is None
    assert answer_of(request, ruled(rules(deny=["Bash"]), LS)) is None


@requirement("policy:order")
def test_denied_tool_call_is_an_error_result() -> None:
    request = HostRequest(request_id="c1", kind=RequestKind.TOOL_CALL, tool_name="book")
    answer = answer_of(request, ruled(rules(deny=["book"]), PolicyCall.of(request)))
    assert answer is not None and answer.is_error
    assert answer.content[0].model_dump()["text"] == "The tool 'book' was not run: denied by the rule book."
    assert answer_of(request, ruled(rules(), PolicyCall.of(request))) is None
