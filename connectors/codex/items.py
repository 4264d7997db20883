"""What Codex does itself: its thread items -> internal tools in the turn. Pure."""

from __future__ import annotations

from connectors._json import JsonObject, compact_json, number_in, object_in, objects_in, plain_text_in, text_in
from connectors._text import without_surrogates
from connectors.codex.thread import EXEC_COMMAND, VIEW_IMAGE, WEB_SEARCH
from harness.turn.events import TurnEvent, internal_tool_finished, internal_tool_started

APPLY_PATCH = "apply_patch"
_SELF = "codex"
_RESULTS = {"completed": "ok", "failed": "failed", "declined": "refused"}
_ACTS = frozenset(
    {
        "commandExecution",
        "fileChange",
        "mcpToolCall",
        "webSearch",
        "imageView",
        "imageGeneration",
        "collabAgentToolCall",
    }
)


def acts(item: JsonObject) -> bool:
    """Whether the item is something Codex does, as opposed to something said."""
    return item.get("type") in _ACTS


def started(item: JsonObject) -> TurnEvent:
    name, arguments, source = _call(item)
    return internal_tool_started(
        plain_text_in(item.get("id")), name, arguments_json=compact_json(arguments), source=source
    )


def finished(item: JsonObject) -> TurnEvent:
    status = plain_text_in(item.get("status"))
    result = _RESULTS.get(status, "unknown") if "status" in item else "ok"
    if result == "ok" and item.get("exitCode") not in (None, 0):
        result = "failed"
    duration = number_in(item.get("durationMs"))
    return internal_tool_finished(
        plain_text_in(item.get("id")),
        result,
        result_text=without_surrogates(_result_text(item)) or None,
        duration_ms=None if duration is None else int(duration),
    )


def call_arguments(item: JsonObject) -> JsonObject:
    return _call(item)[1]


def _call(item: JsonObject) -> tuple[str, JsonObject, str]:
    """Name, arguments and who runs it."""
    match item.get("type"):
        case "commandExecution":
            return EXEC_COMMAND, _present(item, "command", "cwd"), _SELF
        case "fileChange":
            return APPLY_PATCH, _present(item, "changes"), _SELF
        case "mcpToolCall":
            return plain_text_in(item.get("tool")), object_in(item.get("arguments")), plain_text_in(item.get("server"))
        case "webSearch":
            return WEB_SEARCH, _present(item, "query"), _SELF
        case "imageView":
            return VIEW_IMAGE, _present(item, "path"), _SELF
        case _:
            return plain_text_in(item.get("tool")) or plain_text_in(item.get("type")), {}, _SELF


def _result_text(item: JsonObject) -> str:
    error = object_in(item.get("error"))
    if error:
        return text_in(error.get("message"))
    if item.get("type") == "mcpToolCall":
        blocks = objects_in(object_in(item.get("result")).get("content"))
        return "\n".join(text_in(block.get("text")) or f"[{block.get('type')}]" for block in blocks)
    return text_in(item.get("aggregatedOutput"))


def _present(item: JsonObject, *names: str) -> JsonObject:
    return {name: item[name] for name in names if item.get(name) is not None}
