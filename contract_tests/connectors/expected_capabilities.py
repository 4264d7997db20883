"""What each agent can do, by version, as its protocol and its recorded traffic say: written before the connectors.

A connector may promise more than this only with a new recording, and less never: `test_expected_capabilities.py`
fails for either. Every "no" that a connector tells names, in words, the recording that shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NOES = (False, [], "none", "made_up", "matched", "text_only", "ends_turn", "read_only")
"""Told of a capability, less than the contract could carry."""

OURS = {
    "documents_in_prompt": "what each agent takes is not known: a document is refused before it is sent",
    "fork": "two conversations in one session of an agent have not been tried",
    "turn_options": "a turn's own options would be those of the session",
    "web_search": "a choice of the options, not a property of the agent",
}
"""Noes that are not the agents': what our connectors do not offer, and why."""

TOOL, APPROVAL, QUESTION = "tool_call", "approval", "user_question"
STDIO, HTTP = "mcp_stdio", "mcp_http"
WHOLE = {"routable_request_kinds": {TOOL, APPROVAL, QUESTION}, "delegatable_tool_sources": {STDIO, HTTP}}
"""Lists in which each member that is missing is a no."""


def is_no(capability: str, value: Any) -> bool:
    if capability in WHOLE:
        return not WHOLE[capability] <= set(value)
    return value in NOES or (capability == "max_call_wait_ms" and value is not None)


@dataclass(frozen=True)
class Expected:
    """`values` by the capability's name; `recordings` say for each that is a no where that was seen."""

    version: str
    values: dict[str, Any]
    recordings: dict[str, str] = field(default_factory=dict[str, str])


EXPECTED: dict[str, Expected] = {
    "codex": Expected(
        "0.171.0",
        {
            "routable_request_kinds": [TOOL, APPROVAL, QUESTION],
            "delegatable_tool_sources": [STDIO, HTTP],
            "parallel": "all",
            "resume": "continued",
            "seed_history": "as_text",
            "denial": "continues",
            "result_order": "call",
            "call_ids": "exact",
            "tool_error_flag": "text_only",
            "images_in_prompt": True,
            "images_in_tool_results": True,
            "max_call_wait_ms": None,
            "structured_output": "turn",
            "streaming": "token",
            "reports_usage": True,
            "reports_cost": False,
            "supports_request_policy_delegation": True,
        },
        {
            "reports_cost": "usage: token figures of the thread, no money",
            "tool_error_flag": "a failing dynamic tool: the model reads its text alone",
        },
    ),
    "copilot:sdk": Expected(
        "1.0.102",
        {
            "routable_request_kinds": [TOOL, APPROVAL, QUESTION],
            "delegatable_tool_sources": [STDIO, HTTP],
            "parallel": "all",
            "resume": "continued",
            "seed_history": "as_text",
            "denial": "continues",
            "result_order": "call",
            "call_ids": "exact",
            "tool_error_flag": "text_only",
            "images_in_prompt": True,
            "images_in_tool_results": False,
            "max_call_wait_ms": None,
            "structured_output": "none",
            "streaming": "token",
            "reports_usage": True,
            "reports_cost": False,
            "supports_request_policy_delegation": True,
        },
        {
            "images_in_tool_results": "image in a result: the model's next request has the text alone",
            "structured_output": "create: the session takes no schema of the answer",
            "reports_cost": "usage event: a multiplier of requests, no money",
            "tool_error_flag": "a failing tool: the model reads its text alone",
        },
    ),
    "copilot:acp": Expected(
        "1.0.102",
        {
            "routable_request_kinds": [TOOL, APPROVAL],
            "delegatable_tool_sources": [HTTP],
            "parallel": "all",
            "resume": "continued",
            "seed_history": "as_text",
            "denial": "ends_turn",
            "result_order": "call",
            "call_ids": "matched",
            "tool_error_flag": "text_only",
            "images_in_prompt": True,
            "images_in_tool_results": False,
            "max_call_wait_ms": None,
            "structured_output": "none",
            "streaming": "token",
            "reports_usage": True,
            "reports_cost": False,
            "supports_request_policy_delegation": True,
        },
        {
            "routable_request_kinds": "asking the user: the tool is not offered in this mode",
            "delegatable_tool_sources": "one tool over stdio: the server is dropped, only the log says so",
            "denial": "permission: a rejected call ends the turn as if it were done",
            "call_ids": "one tool: the MCP call has a progress token and no id",
            "images_in_tool_results": "images on all three wires: none reaches the model",
            "structured_output": "prompt: takes no schema of the answer",
            "reports_cost": "usage event: a multiplier of requests, no money",
            "tool_error_flag": "a failing tool: the model reads its text alone",
        },
    ),
    "acp:opencode": Expected(
        "1.18.33",
        {
            "routable_request_kinds": [TOOL, APPROVAL],
            "delegatable_tool_sources": [STDIO, HTTP],
            "parallel": "all",
            "resume": "continued",
            "denial": "ends_turn",
            "call_ids": "matched",
            "tool_error_flag": "text_only",
            "images_in_prompt": True,
            "max_call_wait_ms": None,
            "reports_usage": True,
            "reports_cost": True,
            "seed_history": "as_text",
            "result_order": "call",
            "streaming": "token",
            "structured_output": "none",
            "supports_request_policy_delegation": True,
            "images_in_tool_results": True,
        },
        {
            "routable_request_kinds": "asking the user: the tool is off, and hangs where it is switched on",
            "denial": "permission: reject and cancelled both end the turn",
            "call_ids": "one tool: the MCP call has a progress token and no id",
            "structured_output": "initialize and session/new: the protocol takes no schema of the answer",
            "tool_error_flag": "a failing tool: the model reads plain text",
        },
    ),
    "acp:gemini": Expected(
        "0.61.0",
        {
            "routable_request_kinds": [TOOL, APPROVAL],
            "delegatable_tool_sources": [],
            "parallel": "none",
            "resume": "none",
            "denial": "continues",
            "call_ids": "matched",
            "tool_error_flag": "text_only",
            "images_in_prompt": True,
            "max_call_wait_ms": 300_000,
            "reports_usage": True,
            "reports_cost": False,
            "seed_history": "as_text",
            "result_order": "call",
            "streaming": "token",
            "structured_output": "none",
            "supports_request_policy_delegation": False,
            "images_in_tool_results": True,
            "reports_delegated_calls": False,
        },
        {
            "routable_request_kinds": "asking the user: no elicitation was ever sent",
            "delegatable_tool_sources": "settings: a list of core tools denies those of every server not named in it",
            "parallel": "parallel: calls come one by one, each after its permission",
            "resume": "load in a new process: no previous sessions found",
            "call_ids": "one tool: the stream's id is prefixed with the tool, the MCP call has none",
            "max_call_wait_ms": "a call of 330 s: cut at 300 s",
            "reports_cost": "plain: quota figures, no money",
            "structured_output": "initialize and session/new: the protocol takes no schema of the answer",
            "supports_request_policy_delegation": "permission: the question has a title and no arguments",
            "tool_error_flag": "a failing tool: the model reads a long text, JSON in it",
            "reports_delegated_calls": "settings: as delegatable_tool_sources",
        },
    ),
    "acp:claude-agent-acp": Expected(
        "0.49.0",
        {
            "routable_request_kinds": [TOOL, APPROVAL, QUESTION],
            "delegatable_tool_sources": [STDIO, HTTP],
            "parallel": "read_only",
            "resume": "continued",
            "denial": "continues",
            "call_ids": "exact",
            "images_in_prompt": True,
            "images_in_tool_results": True,
            "max_call_wait_ms": None,
            "reports_usage": True,
            "reports_cost": True,
            "seed_history": "as_text",
            "result_order": "call",
            "streaming": "token",
            "structured_output": "none",
            "supports_request_policy_delegation": True,
            "tool_error_flag": "kept",
            "max_result_chars": 500_000,
        },
        {
            "parallel": "parallel: calls without a read-only hint come one by one",
            "structured_output": "initialize and session/new: the protocol takes no schema of the answer",
        },
    ),
    "acp:codex-acp": Expected(
        "2.6.0",
        {
            "routable_request_kinds": [TOOL],
            "delegatable_tool_sources": [STDIO, HTTP],
            "parallel": "read_only",
            "resume": "continued",
            "denial": "continues",
            "call_ids": "exact",
            "tool_error_flag": "text_only",
            "images_in_prompt": True,
            "max_call_wait_ms": 300_000,
            "reports_usage": True,
            "reports_cost": False,
            "seed_history": "as_text",
            "result_order": "call",
            "streaming": "token",
            "structured_output": "none",
            "supports_request_policy_delegation": False,
            "images_in_tool_results": True,
        },
        {
            "routable_request_kinds": "permission: the shell is not asked for, questions come in another mode only",
            "parallel": "parallel: calls without a read-only hint come one by one",
            "tool_error_flag": "a failing tool: the model reads plain text",
            "max_call_wait_ms": "a call of 330 s: cut at 300 s",
            "reports_cost": "plain: token figures, no money",
            "structured_output": "initialize and session/new: the protocol takes no schema of the answer",
            "supports_request_policy_delegation": "permission: the shell asks nobody",
        },
    ),
}
