"""A policy that is kept at the peer's own question: what is answered, what is asked, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from connectors._kept_policy import KeptPolicy, Unasked, check_kept, kept_policy, open_tools
from connectors.copilot import CopilotConnector
from contract_tests.requirements import requirement
from harness.contract import (
    ConversationOptions,
    Delegation,
    HostRequest,
    OptionKind,
    PolicyRule,
    RequestKind,
    RequestOption,
    RequestPolicy,
    ToolSourceDescriptor,
    ToolSourceKind,
)
from harness.errors import NotSupported
from harness.local import LocalHarness
from harness.policy import Place, rule_of_text
from harness.registry import Registry
from harness.testing.policy_probes import PROBES, Probe, lay_out

OPTIONS = [
    RequestOption(id="always", kind=OptionKind.ALLOW_ALWAYS),
    RequestOption(id="once", kind=OptionKind.ALLOW_ONCE),
    RequestOption(id="no", kind=OptionKind.DENY),
]
UNASKED = Unasked(looks=frozenset({"look"}), acts=frozenset({"act"}))
SOURCE = ToolSourceDescriptor(name="notes", kind=ToolSourceKind.MCP_STDIO, command="notes")


def approval(tool: str, arguments_json: str) -> HostRequest:
    return HostRequest(
        kind=RequestKind.APPROVAL, tool_name=tool, arguments_json=arguments_json, options=OPTIONS, read_only=None
    )


def rules(*texts: str) -> list[PolicyRule]:
    return [rule_of_text(text) for text in texts]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    work = lay_out(tmp_path_factory.mktemp("probes"))
    return Place(str(work), home=str(work.parent), resolve=os.path.realpath)


@requirement("agents:policy:kept", "policy:delegation:never-wider")
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.tries)
def test_each_probe_is_answered_as_the_policy_rules(probe: Probe, place: Place) -> None:
    kept = KeptPolicy(probe.policy, place, "codex")
    request = approval(probe.tool, probe.call.arguments_json).model_copy(update={"read_only": probe.call.read_only})
    answer = kept.answer(request)
    expected = {"allow": "once", "deny": "no", "ask": None}[probe.expected]
    assert (answer and answer.selected_option) == expected
    more = kept.denial(request)
    assert (more and more.selected_option) == ("no" if probe.expected == "deny" else None)


@requirement("agents:policy:kept")
def test_without_a_policy_the_host_is_asked_about_everything(tmp_path: Path) -> None:
    kept = kept_policy("codex", Delegation(), str(tmp_path), None)
    assert kept.answer(approval("Bash", '{"command":"ls"}')) is None


@requirement("agents:policy:kept")
def test_a_tool_that_is_denied_whole_is_not_opened() -> None:
    policy = RequestPolicy(deny=rules("act", "look(path=x)"), ask=rules("edit"))
    assert open_tools(policy, ["act", "edit", "look"]) == ["edit", "look"]


@requirement("agents:policy:refused")
@pytest.mark.parametrize(
    ("policy", "named"),
    [
        (RequestPolicy(deny=rules("look(path=secret*)")), r"rule 'look\(path=secret\*\)': its 'look'"),
        (RequestPolicy(ask=rules("a*")), r"rule 'a\*': its 'act'"),
        (RequestPolicy(mode="read_only"), "mode 'read_only': its 'act'"),
        (RequestPolicy(mode="dont_ask", allow=rules("act")), "mode 'dont_ask': its 'look'"),
    ],
)
def test_what_is_about_a_tool_that_acts_without_asking_is_refused_by_name(policy: RequestPolicy, named: str) -> None:
    with pytest.raises(NotSupported, match=named):
        check_kept("copilot", Delegation(request_policy=policy), ["act", "edit", "look"], UNASKED)


@requirement("agents:policy:refused")
@pytest.mark.parametrize(
    "policy",
    [
        RequestPolicy(deny=rules("act", "look", "edit(path=x)"), ask=rules("edit")),
        RequestPolicy(allow=rules("look", "act", "edit"), mode="dont_ask"),
        RequestPolicy(deny=rules("act"), mode="read_only"),
        RequestPolicy(deny=[PolicyRule(tool="look", connector="claude", reason="another's")]),
    ],
)
def test_what_the_peer_keeps_to_the_letter_is_taken(policy: RequestPolicy) -> None:
    check_kept("copilot", Delegation(request_policy=policy), ["act", "edit", "look"], UNASKED)


@requirement("agents:policy:refused")
def test_beside_a_source_whose_tools_act_without_asking_no_rule_that_forbids_is_taken() -> None:
    policy = RequestPolicy(deny=rules("edit(path=x)"))
    delegation = Delegation(request_policy=policy, tool_sources=[SOURCE])
    with pytest.raises(NotSupported, match="a tool of 'notes' may act without asking"):
        check_kept("codex", delegation, ["edit"], Unasked())
    check_kept("acp:opencode", delegation, ["edit"], Unasked(of_sources=False))
    check_kept("codex", delegation.model_copy(update={"request_policy": RequestPolicy()}), ["edit"], Unasked())


@requirement("agents:policy:refused")
async def test_a_policy_that_cannot_be_kept_is_refused_when_it_is_delegated(tmp_path: Path) -> None:
    program = tmp_path / "copilot"
    program.write_text("#!/bin/sh\necho 1.0.102\n")
    program.chmod(0o700)
    registry = Registry({"copilot": CopilotConnector({"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})})
    given = {"command": str(program), "base_url": "http://127.0.0.1:9/v1"}
    internal = {"internal_tools": ["bash", "view"], "model": "m"}
    async with LocalHarness(registry) as harness:
        for mode, is_taken in (("sdk", True), ("acp", False)):
            chosen = json.dumps({**given, "mode": mode})
            options = ConversationOptions(connector="copilot", connector_options_json=chosen, **internal)
            conversation = await harness.begin_conversation(options)
            policy = RequestPolicy(deny=rules("view(path=secret)"))
            if is_taken:
                await harness.delegate_request_policy(conversation, policy)
                continue
            with pytest.raises(NotSupported, match="its 'view' acts without asking"):
                await harness.delegate_request_policy(conversation, policy)
