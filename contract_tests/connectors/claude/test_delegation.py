"""What is handed to the CLI, and what we tell its hook about each call."""

import json
from typing import Any

import pytest

from connectors.claude.config import ClaudeOptions
from connectors.claude.delegation import delegated_servers, tools_denied_whole
from contract_tests.connectors.claude import wire
from contract_tests.connectors.claude.wire import PREFIX, Wire
from contract_tests.requirements import requirement
from harness.contract import Label, PolicyMode, RequestPolicy, ToolSourceDescriptor
from harness.errors import InvalidArgument, LoopGuard, NotSupported
from harness.policy import rule_of_text
from harness.turn.events import TurnFailed

CLAUDE = ClaudeOptions.model_validate({"env": {"CLOUD_KEY": "k", "LANG": "de"}})


def hook(request_id: str, name: str, arguments: Any, call_id: str = "t1") -> dict[str, Any]:
    call = {"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": arguments}
    return wire.control(request_id, "hook_callback", callback_id="gate", input=call, tool_use_id=call_id)


def verdict(wire_: Wire, name: str, arguments: Any) -> str | None:
    """What the CLI's hook hears about a call; null is no opinion."""
    wire_.feed(hook("H1", name, arguments))
    answer = wire_.responses()["H1"]
    return answer["hookSpecificOutput"]["permissionDecision"] if answer else None


@requirement("claude:delegation:policy")
@pytest.mark.parametrize(
    ("mode", "verdicts"),
    [
        ("default", ["ask", "allow", "deny", "ask", "ask", "ask"]),
        ("read_only", ["ask", "deny", "deny", "deny", "deny", "deny"]),
        ("accept_edits", ["ask", "allow", "deny", "allow", "ask", "ask"]),
        ("dont_ask", ["deny", "allow", "deny", "deny", "deny", "deny"]),
        ("bypass", ["allow", "allow", "deny", "allow", "allow", "allow"]),
    ],
)
def test_each_mode_says_of_each_call_what_our_own_policy_says(mode: str, verdicts: list[str]) -> None:
    allowed, denied = rule_of_text("Bash(git status)"), rule_of_text("Bash(rm *)")
    wire_ = Wire(policy=RequestPolicy(mode=PolicyMode(mode), allow=[allowed], deny=[denied]))
    calls = [
        ("Read", {"file_path": "/work/x"}),
        ("Bash", {"command": "git status"}),
        ("Bash", {"command": "ls; rm -rf /"}),
        ("Edit", {"file_path": "/work/x"}),
        ("Edit", {"file_path": "/etc/x"}),
        ("mcp__books__lend", {}),
    ]
    assert [verdict(wire_, name, arguments) for name, arguments in calls] == verdicts


@requirement("claude:delegation:policy")
def test_the_hook_has_no_opinion_on_the_hosts_own_tools_nor_on_questions_that_are_routed() -> None:
    wire_ = Wire(policy=RequestPolicy(mode=PolicyMode.DONT_ASK))
    assert verdict(wire_, PREFIX + "look", {}) is None
    assert verdict(wire_, "AskUserQuestion", {"questions": []}) is None
    declining = Wire(policy=RequestPolicy(questions="decline"))
    assert verdict(declining, "AskUserQuestion", {"questions": []}) == "deny"


@requirement("claude:delegation:policy")
def test_without_a_policy_no_hook_is_registered_and_every_ask_arrives() -> None:
    plain, gated = (Wire(begins=False, policy=policy) for policy in (None, RequestPolicy()))
    for wire_, has_hook in ((plain, False), (gated, True)):
        wire_.protocol.initialize(None, wire.REPLACE)
        [line] = wire_.sent()
        assert bool(line["request"]["hooks"]) is has_hook
    assert verdict(Wire(), "Bash", {"command": "rm -rf /"}) is None


@requirement("claude:delegation:policy")
def test_a_permission_asked_for_in_spite_of_the_hook_gets_the_same_answer() -> None:
    wire_ = Wire(policy=RequestPolicy(allow=[rule_of_text("Bash(ls)")], deny=[rule_of_text("Write")]))
    wire_.feed(wire.can_use_tool("U1", "t1", "Bash", {"command": "ls"}))
    wire_.feed(wire.can_use_tool("U2", "t2", "Write", {"file_path": "/work/x"}))
    wire_.feed(wire.can_use_tool("U3", "t3", "Bash", {"command": "id"}))
    told = wire_.responses()
    assert (told["U1"]["behavior"], told["U2"]["behavior"]) == ("allow", "deny")
    assert [request.call_id for request in wire_.requests] == ["t3"]


@requirement("claude:delegation:sources")
def test_of_a_source_only_the_tools_that_were_given_may_run() -> None:
    wire_ = Wire(source_tools={"books": frozenset({"lend"})})
    assert verdict(wire_, "mcp__books__lend", {}) is None
    assert verdict(wire_, "mcp__books__burn", {}) == "deny"
    assert verdict(wire_, "mcp__films__burn", {}) is None


@requirement("claude:approvals:breaker")
def test_a_policy_that_denies_the_same_call_again_and_again_stops_the_turn() -> None:
    wire_ = Wire(policy=RequestPolicy(deny=[rule_of_text("Bash(rm *)")]))
    for number in range(3):
        wire_.feed(hook(f"H{number}", "Bash", {"command": "rm x"}, f"t{number}"))
    assert [line["request"]["subtype"] for line in wire_.sent() if line["type"] == "control_request"] == ["interrupt"]
    aborted = wire.result(subtype="error_during_execution", is_error=True, terminal_reason="aborted_tools")
    failed = wire_.feed(aborted, wire.state("idle"))[-1]
    assert isinstance(failed, TurnFailed) and isinstance(failed.error, LoopGuard)


@requirement("claude:delegation:policy")
def test_tools_that_are_denied_whole_are_taken_from_the_model_while_the_list_is_short() -> None:
    policy = RequestPolicy(
        deny=[rule_of_text(one) for one in ("WebFetch", "Bash", "Bash(rm *)", "mcp__*", "mcp__books__burn")]
    )
    assert tools_denied_whole(policy) == ["Bash", "WebFetch", "mcp__books__burn"]
    assert tools_denied_whole(RequestPolicy(deny=[rule_of_text(f"tool_{n}") for n in range(500)])) == []
    assert tools_denied_whole(None) == tools_denied_whole(RequestPolicy()) == []


@requirement("claude:delegation:secrets")
def test_a_program_gets_its_own_variables_and_blanks_where_the_cli_has_secrets() -> None:
    env = [Label(name="SHELF", value="42")]
    private = ToolSourceDescriptor(name="books", kind="mcp_stdio", command="books", args=["-v"], env=env)
    shared = private.model_copy(update={"name": "trusted", "share_secrets": True})
    servers = delegated_servers([private, shared], CLAUDE)
    assert servers["books"]["env"] == {
        "ANTHROPIC_API_KEY": "",
        "ANTHROPIC_AUTH_TOKEN": "",
        "ANTHROPIC_BASE_URL": "",
        "CLAUDE_CODE_OAUTH_TOKEN": "",
        "CLOUD_KEY": "",
        "SHELF": "42",
    }
    assert servers["trusted"]["env"] == {"SHELF": "42"}
    assert (servers["books"]["command"], servers["books"]["args"]) == ("books", ["-v"])


@requirement("claude:delegation:refused")
@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"name": "host", "kind": "mcp_stdio", "command": "x"}, InvalidArgument, "'host'"),
        ({"name": "a__b", "kind": "mcp_stdio", "command": "x"}, InvalidArgument, "'a__b'"),
        ({"name": "a b", "kind": "mcp_stdio", "command": "x"}, InvalidArgument, "'a b'"),
        ({"name": "books", "kind": "mcp_stdio"}, InvalidArgument, "'command'"),
        ({"name": "books", "kind": "mcp_http"}, InvalidArgument, "'url'"),
        ({"name": "books", "kind": "mcp_http", "url": "file:///etc/passwd"}, InvalidArgument, "'url'"),
        ({"name": "books", "kind": "provider_mcp", "url": "http://x"}, NotSupported, "'provider_mcp'"),
    ],
)
def test_a_source_that_cannot_be_used_is_named(fields: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        delegated_servers([ToolSourceDescriptor(**fields)], CLAUDE)


@requirement("claude:delegation:refused")
def test_two_sources_cannot_have_one_name() -> None:
    source = ToolSourceDescriptor(name="books", kind="mcp_http", url="http://127.0.0.1/x")
    with pytest.raises(InvalidArgument, match="two tool sources 'books'"):
        delegated_servers([source, source], CLAUDE)
    assert json.dumps(delegated_servers([source], CLAUDE))


@requirement("claude:delegation:sources")
def test_a_source_that_the_cli_cannot_reach_is_told_once() -> None:
    wire_ = Wire(sources=frozenset({"books", "films"}))
    begun = wire.init(PREFIX + "look", PREFIX + "save", "mcp__films__show")
    begun["mcp_servers"] = [{"name": "books", "status": "failed"}, {"name": "films", "status": "connected"}]
    told = [*wire.shown(wire_.feed(begun)), *wire.shown(wire_.feed(begun))]
    assert told == [("notice", "tool_source_failed", None)]


@requirement("claude:tools:only-ours")
def test_an_internal_tool_that_this_cli_does_not_have_is_told() -> None:
    wire_ = Wire(internal_tools=["Agent", "Glob"])
    without_glob = wire.init(PREFIX + "look", PREFIX + "save", "Task")
    assert wire.shown([*wire_.feed(without_glob), *wire_.feed(without_glob)]) == [("notice", "missing_tools", None)]
