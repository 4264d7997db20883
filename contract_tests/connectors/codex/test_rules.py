"""What a rule is compared with where Codex asks in words of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors._kept_policy import KeptPolicy
from connectors.codex.protocol import CodexProtocol
from connectors.codex.rules import asks_for_more, command_in
from connectors.codex.thread import dynamic_tools
from contract_tests.connectors.codex.wire import TOOLS, Wire, asked
from contract_tests.requirements import requirement
from harness.contract import RequestPolicy
from harness.policy import Place, rule_of_text

POLICY = RequestPolicy(allow=[rule_of_text("exec_command(touch *)")], deny=[rule_of_text("exec_command(rm *)")])


def wire_with(policy: RequestPolicy) -> Wire:
    wire = Wire(begins=False, internal_tools=["exec_command"])
    kept = KeptPolicy(policy, Place("/work"), "codex")
    wire.protocol = CodexProtocol(wire.options, dynamic_tools(TOOLS), kept)
    wire.open()
    wire.begin()
    return wire


def question(command: str, **more: Any) -> dict[str, Any]:
    shown = {"command": command, "cwd": "/work", "kind": "command", "commandActions": [], **more}
    return asked(7, "item/commandExecution/requestApproval", itemId="c1", **shown)


@requirement("codex:policy")
@pytest.mark.parametrize(
    ("shown", "command"),
    [
        ("/bin/bash -lc 'touch made'", "touch made"),
        ("/bin/bash -c ls", "ls"),
        ("/usr/bin/sh -lc ls", "ls"),
        ("""/bin/bash -lc "it's='x'; echo \\""'$it"'""", """it's='x'; echo "$it\""""),
        ("/tmp/bash -lc ls", None),
        ("/bin/python -c ls", None),
        ("/bin/bash -lc ls extra", None),
        ("/bin/bash -lc 'ls", None),
        ("ls", None),
    ],
)
def test_a_command_is_read_out_of_the_shell_that_runs_it(shown: str, command: str | None) -> None:
    assert command_in({"command": shown}) == command


@requirement("codex:policy")
@pytest.mark.parametrize(
    ("change", "written"),
    [
        ({"cwd": "/elsewhere"}, None),
        ({"reason": "needs the network"}, None),
        ({"additionalPermissions": {"network": True}}, None),
        ({"kind": "writeStdin"}, None),
        ({}, {"cmd": "touch made", "sandbox_permissions": "require_escalated"}),
        ({}, {"cmd": "touch other"}),
    ],
)
def test_a_question_for_more_than_a_command_here_is_never_allowed_by_a_rule(
    change: dict[str, Any], written: dict[str, Any] | None
) -> None:
    params = {"command": "/bin/bash -lc 'touch made'", "cwd": "/work", "kind": "command", **change}
    assert asks_for_more(params, "/work", None if written is None else json.dumps(written))
    plain = {"command": "/bin/bash -lc 'touch made'", "cwd": "/work", "kind": "command", "reason": None}
    assert not asks_for_more(plain, "/work", '{"cmd":"touch made","yield_time_ms":1000}')


@requirement("codex:policy", "agents:policy:kept")
@pytest.mark.parametrize(
    ("command", "decision"), [("touch made", "accept"), ("rm made", "decline"), ("touch a; rm b", "decline")]
)
def test_a_delegated_policy_answers_codex_and_nobody_is_asked(command: str, decision: str) -> None:
    wire = wire_with(POLICY)
    wire.sent()
    wire.feed(question(f"/bin/bash -lc '{command}'"))
    assert wire.requests == []
    assert wire.sent() == [{"id": 7, "result": {"decision": decision}}]


@requirement("codex:policy", "agents:policy:kept")
def test_what_the_policy_does_not_cover_arrives() -> None:
    wire = wire_with(POLICY)
    wire.sent()
    wire.feed(question("/bin/bash -lc 'mkdir made'"), question("/bin/bash -lc 'touch made'", reason="as root"))
    assert [request.call_id for request in wire.requests] == ["c1", "c1"]
    assert wire.sent() == []
