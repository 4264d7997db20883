"""Policies as files write them, and several of them over one another."""

from typing import Any

import pytest

from contract_tests.requirements import requirement
from harness.contract import ArgumentPattern, PolicyRule, RequestPolicy
from harness.errors import ConfigError
from harness.policy import RESTRICTIVE, Layer, layered, policy_of, rule_of_text


@requirement("policy:files")
def test_file_gives_rules_in_short_and_in_long_form() -> None:
    long = {"tool": "Write", "arguments": {"file_path": "!./**"}, "connector": "claude", "reason": "only here"}
    read = policy_of({"mode": "dont_ask", "deny": ["Bash(rm *)", long], "questions": "decline"}, "p.toml")
    assert read == RequestPolicy(
        mode="dont_ask",
        questions="decline",
        deny=[
            rule_of_text("Bash(rm *)"),
            PolicyRule(
                tool="Write",
                connector="claude",
                arguments=[ArgumentPattern(name="file_path", pattern="!./**")],
                reason="only here",
            ),
        ],
    )


@requirement("policy:files")
@pytest.mark.parametrize(
    ("table", "key", "expected"),
    [
        ({"alow": []}, "policy.alow", "one of mode, deny, ask, allow, questions"),
        ({"mode": "yolo"}, "policy.mode", "one of default, read_only"),
        ({"mode": 3}, "policy.mode", "one of"),
        ({"deny": "Bash"}, "policy.deny", "a list of rules"),
        ({"deny": ["Bash("]}, "policy.deny[0]", "a rule such as"),
        ({"deny": [3]}, "policy.deny[0]", "a text such as"),
        ({"ask": ["Bash", {"tol": "x"}]}, "policy.ask[1].tol", "one of tool"),
        ({"ask": [{"tool": 3}]}, "policy.ask[0].tool", "a text"),
        ({"ask": [{"arguments": {"command": 3}}]}, "policy.ask[0].arguments", "a table of"),
        ({"ask": [{"arguments": "x"}]}, "policy.ask[0].arguments", "a table of"),
        ({"allow": ["Bash(* --version)"]}, "policy.allow[0]", "which program"),
        ({"allow": ["WebFetch(https://example.org/x)"]}, "policy.allow[0]", "is no host"),
        ({"questions": "answer"}, "policy.questions", "one of route, decline"),
    ],
)
def test_what_is_wrong_names_file_key_and_what_was_expected(table: dict[str, Any], key: str, expected: str) -> None:
    with pytest.raises(ConfigError) as raised:
        policy_of(table, "p.toml", "policy")
    assert raised.value.detail["file"] == "p.toml"
    assert raised.value.detail["key"] == key
    assert expected in str(raised.value.detail["expected"])
    assert "p.toml" in raised.value.message and key in raised.value.message


def one_of_each(name: str, mode: str = "default") -> RequestPolicy:
    deny, ask, allow = ([rule_of_text(f"{name}_{part}")] for part in ("deny", "ask", "allow"))
    return RequestPolicy(mode=mode, deny=deny, ask=ask, allow=allow)


def tools(rules: list[PolicyRule]) -> list[str]:
    return [rule.tool for rule in rules]


@requirement("policy:layers")
def test_first_trusted_layer_decides_and_all_deny() -> None:
    policy = layered([Layer(one_of_each("a", "accept_edits"), "a"), Layer(one_of_each("b", "bypass"), "b")])
    assert (policy.mode, tools(policy.allow), tools(policy.ask)) == ("accept_edits", ["a_allow"], ["a_ask"])
    assert tools(policy.deny) == ["a_deny", "b_deny"]


@requirement("policy:layers")
def test_layer_without_trust_only_denies_and_asks() -> None:
    project = Layer(one_of_each("project", "bypass"), "project", is_trusted=False)
    policy = layered([project, Layer(one_of_each("user"), "user")])
    assert (policy.mode, tools(policy.allow)) == ("default", ["user_allow"])
    assert tools(policy.ask) == ["project_ask", "user_ask"]
    assert tools(policy.deny) == ["project_deny", "user_deny"]
    assert project.is_held_back
    alone = layered([project])
    assert (alone.mode, alone.allow) == ("default", [])


@requirement("policy:layers")
def test_nothing_said_is_the_restrictive_default() -> None:
    assert layered([]) == RESTRICTIVE == RequestPolicy()
