"""A reply as output items and as a whole response (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from harness.contract.tools import ToolCall
from harness.contract.usage import UsageInfo
from harness.contract.value import JsonValue
from harness.errors import HarnessError
from harness.surfaces.compatible.exchange import ReplyEnd
from harness.surfaces.compatible.reply import Reply
from harness.surfaces.openai.errors import error_object
from harness.surfaces.openai.responses_request import RESPONSE_PREFIX, ResponsesRequest
from harness.surfaces.openai.responses_tools import ToolName

Status: TypeAlias = Literal["in_progress", "completed", "incomplete"]
INCOMPLETE = {ReplyEnd.MAX_TOKENS: "max_output_tokens", ReplyEnd.REFUSAL: "content_filter"}
"""Why a response is not complete; a refusal is told when its words are out, so no part can say it."""
_CODES = frozenset(
    {"rate_limit_exceeded", "insufficient_quota", "context_length_exceeded", "invalid_prompt", "server_error"}
)
"""Those of OpenAI's own that clients act upon; ours go with `server_error`, as `type`."""


@dataclass(eq=False, slots=True)
class Piece:
    """Some words, and the agent's item that they belong to."""

    text: str
    source: str | None
    counts: bool = True
    """False once the agent has taken them back."""


@dataclass(eq=False, slots=True)
class SaidItem:
    """What the agent said, or thought, in one item of its own; with what there is so far."""

    kind: Literal["message", "reasoning"]
    item_id: str
    index: int
    source: str | None
    pieces: list[Piece] = field(default_factory=list[Piece])
    status: Status = "in_progress"

    @property
    def streamed(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def counted(self) -> str:
        return "".join(piece.text for piece in self.pieces if piece.counts)

    @property
    def has_lost(self) -> bool:
        return not all(piece.counts for piece in self.pieces)

    def object(self, text: str) -> dict[str, JsonValue]:
        has_begun = self.pieces or self.status != "in_progress"
        if self.kind == "reasoning":
            summary: list[JsonValue] = [summary_part(text)] if has_begun else []
            return {"id": self.item_id, "type": "reasoning", "summary": summary}
        content: list[JsonValue] = [text_part(text)] if has_begun else []
        return {"id": self.item_id, "type": "message", "status": self.status, "role": "assistant", "content": content}


Output: TypeAlias = list[SaidItem | dict[str, JsonValue]]
"""Items as they began; calls as they are told."""


def counted_output(output: Output) -> list[JsonValue]:
    """The items without what was taken back. White space that is left of one belongs behind the one before it."""
    counted: list[tuple[SaidItem, list[str]] | dict[str, JsonValue]] = []
    last: dict[str, list[str]] = {}
    for item in output:
        if isinstance(item, dict):
            counted.append(item)
        elif item.has_lost and not item.counted.strip():
            last.get(item.kind, []).append(item.counted)
        else:
            last[item.kind] = [item.counted]
            counted.append((item, last[item.kind]))
    return [one if isinstance(one, dict) else one[0].object("".join(one[1])) for one in counted]


def call_object(item_id: str, call: ToolCall, request: ResponsesRequest, status: Status) -> dict[str, JsonValue]:
    """A call of one of the client's tools, under the client's name of it."""
    name = request.client_names.get(call.tool_name, ToolName(call.tool_name))
    told: dict[str, JsonValue] = {
        "id": item_id,
        "type": "function_call",
        "status": status,
        "call_id": call.call_id,
        "name": name.name,
        "arguments": call.arguments_json if status != "in_progress" else "",
    }
    return told if name.namespace is None else {**told, "namespace": name.namespace}


def text_part(text: str) -> dict[str, JsonValue]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def summary_part(text: str) -> dict[str, JsonValue]:
    return {"type": "summary_text", "text": text}


def response_object(
    request: ResponsesRequest,
    reply: Reply,
    status: str,
    output: list[JsonValue],
    *,
    reason: str | None = None,
    error: HarnessError | None = None,
    usage: UsageInfo | None = None,
) -> dict[str, JsonValue]:
    return {
        "id": f"{RESPONSE_PREFIX}{reply.reply_id}",
        "object": "response",
        "created_at": reply.created_at,
        "status": status,
        "error": None if error is None else _error_object(error),
        "incomplete_details": None if reason is None else {"reason": reason},
        "model": reply.model,
        "output": output,
        "usage": usage_object(usage),
        **request.echo,
    }


def usage_object(usage: UsageInfo | None) -> dict[str, JsonValue] | None:
    """Null unless both sides are known: clients add the figures up. Details have no "unknown", so they are 0."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_input_tokens or 0,
            "cache_write_tokens": usage.cache_write_tokens or 0,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _error_object(error: HarnessError) -> dict[str, JsonValue]:
    told = error_object(error)
    code = told["code"]
    known: dict[str, JsonValue] = {"code": code} if code in _CODES else {"code": "server_error", "type": code}
    return {**known, "message": told["message"]}
