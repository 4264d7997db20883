"""A delegated policy is never wider than the host's: searched for with what people hide commands and paths behind.

The peer here is a careless one: it reads what it was given with plain wildcards over the whole text, and knows nothing
of shells. For the forms that are delegated that must not matter; for a rule that is one character wider it does.
"""

import json
import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract_tests.requirements import requirement
from harness.contract import PolicyMode, PolicyRule, RequestPolicy
from harness.policy import (
    Denied,
    Form,
    Place,
    Policy,
    PolicyCall,
    Verdict,
    decide,
    delegated,
    narrowed,
    rule_of_text,
    rule_text,
)
from harness.testing.policy_probes import lay_out

COMMANDS = ("git status", "touch made.txt", "npm test", "make && make test", "ls 'a b'")
RULES = (
    *(f"Bash({command})" for command in COMMANDS),
    "Bash(git *)",
    "Bash",
    "Write(src/**)",
    "Write(./**)",
    "Write(src/deep/**)",
    "Write(*.txt)",
    "Write",
    "Read(src/**)",
    "Read(../outside/**)",
    "Edit(!./**)",
    "W*",
)
# fmt: off
PIECES = (
    ";", "&&", "||", "|", "&", "\n", "\r", "$(rm x)", "`rm x`", "${x}", "<(x)", ">", ">>", "2>&1", "< x", "<<x", "'",
    '"', "\\", "A=1", "LD_PRELOAD=x", "sudo", "env", "timeout 5", "#", "{", "}", "(", ")", "*", "!", "~", " ", "\t",
    "\u00a0", "\u202e", "x", "rm x", "git status", "touch made.txt",
)
# fmt: on
NAMES = (
    "src",
    "src2",
    "deep",
    "way-out",
    "back",
    "secret-link.txt",
    "..",
    ".",
    "",
    "a.txt",
    "SRC",
    ".git",
    "~",
    "*",
    "a b",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    work = lay_out(tmp_path_factory.mktemp("delegation"))
    return Place(str(work), home=str(work.parent), resolve=os.path.realpath)


TOOLS = ("Write", "Read", "Edit", "write", "WriteAll")


def near_commands() -> Iterator[str]:
    """Every allowed command, and everything that is one piece away from one."""
    for start in COMMANDS:
        yield start
        for at, piece, gone in product(range(len(start) + 1), PIECES, (0, 1)):
            yield start[:at] + piece + start[at + gone :]
            yield start[:at] + start[at + gone :]


def near_calls(place: Place) -> Iterator[PolicyCall]:
    for command in near_commands():
        yield bash(command)
    for length in (1, 2, 3):
        for names, tool in product(product(NAMES, repeat=length), TOOLS):
            yield file_call(tool, "/".join(names))
            yield file_call(tool, "/".join((place.cwd, *names)))


def calls(place: Place) -> st.SearchStrategy[PolicyCall]:
    """Farther away: several pieces around or in a command, longer paths."""
    pieces = st.lists(st.one_of(st.sampled_from(COMMANDS), st.sampled_from(PIECES)), max_size=5)
    runs = st.one_of(pieces.map(" ".join), pieces.map("".join)).map(bash)
    paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=7).map("/".join)
    places = st.one_of(paths, paths.map(lambda path: f"{place.cwd}/{path}"), paths.map(lambda path: f"/{path}"))
    return st.one_of(runs, st.builds(file_call, st.sampled_from(TOOLS), places))


def bash(command: str) -> PolicyCall:
    return PolicyCall("Bash", json.dumps({"command": command}))


def file_call(tool: str, path: str) -> PolicyCall:
    return PolicyCall(tool, json.dumps({"file_path": path}))


def policies() -> st.SearchStrategy[RequestPolicy]:
    some = st.lists(st.sampled_from(RULES), max_size=3, unique=True).map(lambda texts: [rule_of_text(t) for t in texts])
    return st.builds(RequestPolicy, mode=st.sampled_from(PolicyMode), allow=some, deny=some, ask=some)


def peer_allows(policy: RequestPolicy, call: PolicyCall, place: Place) -> bool:
    """The careless peer, written without a line of the host's."""
    if any(_peer_matches(rule, call, place) for rule in (*policy.deny, *policy.ask)):
        return False
    arguments = json.loads(call.arguments_json)
    if policy.mode == "bypass":
        return True
    if policy.mode == "read_only":
        return False
    if policy.mode == "accept_edits" and call.tool in ("Write", "Edit"):
        path = _peer_path(arguments["file_path"], place)
        return path is not None and not {".git"} & set(path.split("/"))
    return any(_peer_matches(rule, call, place) for rule in policy.allow)


def _peer_matches(rule: PolicyRule, call: PolicyCall, place: Place) -> bool:
    if not fnmatchcase(call.tool, rule.tool):
        return False
    arguments = json.loads(call.arguments_json)
    for one in rule.arguments:
        value = arguments.get(one.name)
        text = value if one.name == "command" or value is None else _peer_path(value, place)
        if text is None or not fnmatchcase(text, one.pattern.removeprefix("./")):
            return False
    return True


def _peer_path(path: str, place: Place) -> str | None:
    """Below the working directory with links followed, or null.

    What the form does not say it leaves to the host: a home directory, and `..` behind a link, which programs read in
    two ways.
    """
    if path.startswith("~") or path != path.strip() or not path:
        return None
    whole = os.path.join(place.cwd, path)  # noqa: PTH118
    real, inside = os.path.realpath(whole), os.path.realpath(place.cwd)
    if real != os.path.realpath(os.path.normpath(whole)):
        return None
    if real == inside:
        return "."
    return real.removeprefix(f"{inside}/") if real.startswith(f"{inside}/") else None


def is_wider(handed_over: RequestPolicy, policy: RequestPolicy, call: PolicyCall, place: Place) -> bool:
    allowed_there = peer_allows(handed_over, call, place)
    return allowed_there and decide(Policy(policy), call, place).verdict != Verdict.ALLOW


@requirement("policy:delegation:never-wider")
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(policy=policies(), data=st.data())
def test_delegated_policy_allows_only_what_the_host_allows(
    policy: RequestPolicy, data: st.DataObject, place: Place
) -> None:
    handed_over = delegated(Policy(policy), connector="claude", cwd=place.cwd)
    call = data.draw(calls(place))
    assert not is_wider(handed_over, policy, call, place)


ONE_CHARACTER_WIDER = (
    ("Bash(git status)", "Bash(git status*)"),
    ("Bash(git status)", "Bash(*git status)"),
    ("Bash(git status)", "Bash(git*status)"),
    ("Bash(git status)", "Bash(git?status)"),
    ("Bash(git status)", "Bash(git statu?)"),
    ("Bash(touch made.txt)", "Bash(touch made.txt*)"),
    ("Bash(touch made.txt)", "Bash(touch made?txt)"),
    ("Write(src/**)", "Write(src**)"),
    ("Write(src/**)", "Write(*rc/**)"),
    ("Write(src/deep/**)", "Write(src/*/**)"),
    ("Write(src/deep/**)", "Write(src/**)"),
    ("Write", "Write*"),
)
"""An allow rule, and the same where one character lets more through."""


@requirement("policy:delegation:never-wider")
@pytest.mark.parametrize(("rule", "wider"), ONE_CHARACTER_WIDER)
def test_rule_that_is_one_character_wider_is_found(rule: str, wider: str, place: Place) -> None:
    policy = RequestPolicy(allow=[rule_of_text(rule)])
    handed_over = delegated(Policy(policy), connector="claude", cwd=place.cwd)
    assert [rule_text(one) for one in handed_over.allow] == [rule]
    planted = handed_over.model_copy(update={"allow": [rule_of_text(wider)]})
    found = next((call for call in near_calls(place) if is_wider(planted, policy, call, place)), None)
    assert found is not None, f"'{wider}' in place of '{rule}' was not noticed"


@requirement("policy:delegation:never-wider")
@pytest.mark.parametrize("rule", RULES)
def test_nothing_near_an_allowed_call_is_let_through(rule: str, place: Place) -> None:
    policy = RequestPolicy(allow=[rule_of_text(rule)])
    handed_over = delegated(Policy(policy), connector="claude", cwd=place.cwd)
    assert [call for call in near_calls(place) if is_wider(handed_over, policy, call, place)] == []


@requirement("policy:delegation:never-wider")
def test_only_known_forms_are_handed_over(place: Place) -> None:
    policy = Policy(RequestPolicy(allow=[rule_of_text(text) for text in RULES]))
    texts = {rule_text(rule) for rule in delegated(policy, connector="claude", cwd=place.cwd).allow}
    kept = {"Bash(git *)", "Bash(make && make test)", "Write(*.txt)", "Read(../outside/**)", "Edit(!./**)", "W*"}
    assert texts == set(RULES) - kept
    for mode in PolicyMode:
        assert delegated(Policy(RequestPolicy(mode=mode)), connector="claude", cwd=place.cwd).mode == mode
    only_tools = delegated(policy, connector="claude", cwd=place.cwd, forms={Form.TOOL})
    assert [rule_text(rule) for rule in only_tools.allow] == ["Bash", "Write"]


@requirement("policy:delegation:never-wider")
@pytest.mark.parametrize("objection", ["Bash(rm *)", "*", "bash"])
def test_nothing_is_handed_over_that_another_rule_may_object_to(objection: str, place: Place) -> None:
    for field in ("deny", "ask"):
        allow = [rule_of_text("Bash"), rule_of_text("Bash(git status)")]
        policy = RequestPolicy(allow=allow).model_copy(update={field: [rule_of_text(objection)]})
        assert delegated(Policy(policy), connector="claude", cwd=place.cwd).allow == []


@requirement("policy:delegation:never-wider")
def test_hooks_and_other_connectors_keep_everything_here(place: Place) -> None:
    allow = [rule_of_text("Bash")]
    hooked = Policy(RequestPolicy(allow=allow, mode="bypass"), hooks=[lambda call: Denied("no")])
    assert delegated(hooked, connector="claude", cwd=place.cwd) == RequestPolicy()
    elsewhere = RequestPolicy(allow=[allow[0].model_copy(update={"connector": "codex"})])
    assert delegated(Policy(elsewhere), connector="claude", cwd=place.cwd).allow == []
    assert len(delegated(Policy(elsewhere), connector="codex", cwd=place.cwd).allow) == 1


@requirement("policy:delegation:never-wider")
def test_dont_ask_is_handed_over_only_with_all_that_is_allowed(place: Place) -> None:
    kept = RequestPolicy(mode="dont_ask", allow=[rule_of_text("Bash(git status)")])
    cut = RequestPolicy(mode="dont_ask", allow=[rule_of_text("Bash(git *)")])
    modes = [delegated(Policy(one), connector="claude", cwd=place.cwd).mode for one in (kept, cut)]
    assert modes == ["dont_ask", "default"]


@requirement("policy:delegation:house")
@pytest.mark.parametrize(
    ("house", "allowed", "mode"),
    [
        (RequestPolicy(), ["Bash", "Read"], "accept_edits"),
        (RequestPolicy(deny=[rule_of_text("Bash(rm *)")]), ["Read"], "default"),
        (RequestPolicy(ask=[rule_of_text("B*")]), ["Read"], "default"),
        (RequestPolicy(deny=[rule_of_text("*")]), [], "default"),
        (RequestPolicy(mode="read_only"), [], "default"),
        (RequestPolicy(mode="dont_ask", allow=[rule_of_text("Bash")]), [], "default"),
        (RequestPolicy(mode="bypass"), ["Bash", "Read"], "accept_edits"),
    ],
)
def test_caller_hands_over_nothing_that_the_house_may_object_to(
    house: RequestPolicy, allowed: list[str], mode: str, place: Place
) -> None:
    asked = RequestPolicy(mode="accept_edits", allow=[rule_of_text("Bash"), rule_of_text("Read")])
    left = narrowed(asked, Policy(house), connector="claude", cwd=place.cwd)
    assert ([rule_text(rule) for rule in left.allow], left.mode) == (allowed, mode)
    hooked = narrowed(asked, Policy(house, [lambda call: None]), connector="claude", cwd=place.cwd)
    assert (hooked.allow, hooked.mode) == ([], "default")


def test_scene_is_the_one_of_the_probes(place: Place) -> None:
    assert (Path(place.cwd) / "src" / "way-out").is_symlink()
