"""The CLI asks whether a tool may run -> a request of kind approval, and the host's answer -> its permission. Pure.

`ask` is what the CLI sent: the body of `can_use_tool`, or the arguments of the permission prompt tool.
"""

from __future__ import annotations

import json

from connectors._json import JsonObject, compact_json, object_in, objects_in, plain_text_in
from connectors.claude.messages import ModelCall
from harness.contract.requests import HostRequest, HostResponse, OptionKind, RequestKind, RequestOption

ACCEPT_EDITS = "accept_edits"
"""The option that stands for the CLI's mode of this name: it lets more tools through than the one asked for."""

_TARGETS = ("file_path", "notebook_path", "url", "path", "command")
_READS = frozenset({"Read", "Glob", "Grep"})
_WRITES = frozenset({"Bash", "Edit", "NotebookEdit", "Write"})


def approval_of(ask: JsonObject, peer_request_id: str, written: ModelCall | None) -> HostRequest:
    """`written` is the call that the approval gates, as the model wrote it."""
    name, arguments = plain_text_in(ask.get("tool_name")), object_in(ask.get("input"))
    return HostRequest(
        kind=RequestKind.APPROVAL,
        call_id=plain_text_in(ask.get("tool_use_id")) or None,
        peer_request_id=peer_request_id,
        order=written.order if written else None,
        tool_name=name,
        arguments_json=written.arguments_json(arguments) if written else compact_json(arguments),
        options=_options(ask),
        title=plain_text_in(ask.get("title")) or plain_text_in(ask.get("display_name")) or name,
        description=plain_text_in(ask.get("decision_reason")) or plain_text_in(ask.get("description")) or None,
        target=_target(ask, arguments),
        read_only=is_read_only(name),
        parent_call_id=written.parent_call_id if written else None,
    )


def is_read_only(tool_name: str) -> bool | None:
    """Whether the CLI's tool of this name only looks; null where that is not known."""
    return True if tool_name in _READS else False if tool_name in _WRITES else None


def permission_of(ask: JsonObject, request: HostRequest, response: HostResponse) -> JsonObject:
    """What the CLI is told."""
    option = request.option(response.selected_option)
    kind = OptionKind.DENY if option is None else option.kind
    if kind in (OptionKind.DENY, OptionKind.DENY_AND_INTERRUPT):
        reason = response.reason or "The host denied this tool use."
        return {"behavior": "deny", "message": reason, "interrupt": kind == OptionKind.DENY_AND_INTERRUPT}
    changed = response.updated_arguments_json
    allowed: JsonObject = {
        "behavior": "allow",
        # 2.1.197 takes no answer without it
        "updatedInput": object_in(ask.get("input")) if changed is None else object_in(json.loads(changed)),
    }
    if kind == OptionKind.ALLOW_ALWAYS:
        allowed["updatedPermissions"] = [*_rules(ask)]
    elif option is not None and option.id == ACCEPT_EDITS:
        allowed["updatedPermissions"] = [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]
    return allowed


def own_suggestions(ask: JsonObject) -> JsonObject:
    """The ask with rules to allow it always, for where the CLI suggests none: no wider than those it would suggest."""
    name, command = plain_text_in(ask.get("tool_name")), object_in(ask.get("input")).get("command")
    rule: JsonObject = {"toolName": name}
    if name == "Bash" and isinstance(command, str):
        rule["ruleContent"] = command
    elif not name.startswith("mcp__"):
        return ask
    suggestion: JsonObject = {"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session"}
    return {**ask, "permission_suggestions": [suggestion]}


def _options(ask: JsonObject) -> list[RequestOption]:
    options = [_option(OptionKind.ALLOW_ONCE, "Allow once")]
    rules = [_rule_text(rule) for entry in _rules(ask) for rule in objects_in(entry.get("rules"))]
    if rules:
        told = f"for the rest of this conversation: {', '.join(rules)}"
        options.append(_option(OptionKind.ALLOW_ALWAYS, "Allow always", told))
    if any(entry.get("type") == "setMode" and entry.get("mode") == "acceptEdits" for entry in _suggestions(ask)):
        told = "for the rest of this conversation, every change of a file in the working directory"
        options.append(RequestOption(id=ACCEPT_EDITS, kind=OptionKind.OTHER, label="Accept edits", description=told))
    options.append(_option(OptionKind.DENY, "Deny"))
    options.append(_option(OptionKind.DENY_AND_INTERRUPT, "Deny and stop", "the turn ends"))
    return options


def _option(kind: OptionKind, label: str, description: str | None = None) -> RequestOption:
    return RequestOption(id=kind.value, kind=kind, label=label, description=description)


def _suggestions(ask: JsonObject) -> list[JsonObject]:
    return objects_in(ask.get("permission_suggestions"))


def _rules(ask: JsonObject) -> list[JsonObject]:
    """The suggested rules, kept in the CLI's memory: `localSettings` would write into the user's project."""
    return [
        {**entry, "destination": "session"}
        for entry in _suggestions(ask)
        if entry.get("type") == "addRules" and entry.get("behavior") == "allow"
    ]


def _rule_text(rule: JsonObject) -> str:
    name, content = plain_text_in(rule.get("toolName")), plain_text_in(rule.get("ruleContent"))
    return f"{name}({content})" if content else name


def _target(ask: JsonObject, arguments: JsonObject) -> str | None:
    named = (plain_text_in(arguments.get(name)) for name in _TARGETS)
    return plain_text_in(ask.get("blocked_path")) or next((text for text in named if text), None)
