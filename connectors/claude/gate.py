"""Our own decision about each of the CLI's tool calls, where a policy was delegated. Pure.

The CLI's flags and modes say much of it, but not to the letter: its hook asks us about every call before it runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from connectors._json import JsonObject, compact_json
from connectors.claude.permissions import is_read_only
from connectors.claude.questions import ASK_TOOL
from harness.contract.delegation import RequestPolicy
from harness.contract.requests import RequestKind
from harness.policy import Place, Policy, PolicyCall, Ruling, RulingBy, Verdict, decide

HOOK_ID = "gate"
HOOKS: JsonObject = {"PreToolUse": [{"matcher": None, "hookCallbackIds": [HOOK_ID]}]}
"""For `initialize`: every call of every tool, of subagents too."""


class Gate:
    """The delegated policy, and which tools of each delegated source may be used at all."""

    def __init__(
        self, policy: RequestPolicy | None, place: Place, source_tools: Mapping[str, frozenset[str]] | None = None
    ) -> None:
        self._policy = None if policy is None else Policy(policy)
        self._place = place
        self._source_tools = source_tools or {}

    @property
    def is_needed(self) -> bool:
        return self._policy is not None or bool(self._source_tools)

    def ruling(self, tool_name: str, arguments: JsonObject) -> Ruling | None:
        """What we say about this call; null leaves it to the CLI, which asks the host where it is in doubt."""
        source, _, name = tool_name.removeprefix("mcp__").partition("__")
        if tool_name.startswith("mcp__") and name not in self._source_tools.get(source, {name}):
            reason = f"the tool '{name}' of '{source}' was not given to this conversation"
            return Ruling(Verdict.DENY, RulingBy.DENY_RULE, reason)
        if self._policy is None:
            return None
        kind = RequestKind.USER_QUESTION if tool_name == ASK_TOOL else RequestKind.APPROVAL
        call = PolicyCall(tool_name, compact_json(arguments), kind=kind, read_only=is_read_only(tool_name))
        ruling = decide(self._policy, call, self._place)
        # a question comes to the host by itself
        return None if kind == RequestKind.USER_QUESTION and ruling.verdict == Verdict.ASK else ruling


def hook_answer(ruling: Ruling | None) -> JsonObject:
    """The answer to the CLI's hook."""
    if ruling is None:
        return {}
    decision: JsonObject = {
        "hookEventName": "PreToolUse",
        "permissionDecision": ruling.verdict.value,
        "permissionDecisionReason": ruling.reason,
    }
    return {"hookSpecificOutput": decision}
