"""Events of the Responses API, OpenAI's own and other servers', into an answer (pure).

The items of `output_item.done` and of the last event count; deltas are for display only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from connectors._json import JsonObject, object_in, objects_in, plain_text_in, text_in
from connectors._model_json import is_json
from connectors.openai.shared_json import usage_of
from harness.contract.output import InternalToolResult, StopReason
from harness.contract.requests import HostRequest, OptionKind, RequestKind, RequestOption
from harness.contract.usage import UsageInfo
from harness.errors import HarnessError, ProviderError
from harness.model_loop import CallMade, Heard, ModelAnswer, Said
from harness.model_loop.provider_errors import error_in_stream
from harness.turn.events import internal_tool_finished, internal_tool_started

_USAGE = ("input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details")
_PHASES = {"commentary": "commentary", "final_answer": "final"}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_SHOWN_OTHERWISE = frozenset(
    {
        "response.created",
        "response.in_progress",
        "response.queued",
        "response.content_part.added",
        "response.content_part.done",
        "response.output_text.done",
        "response.output_text.annotation.added",
        "response.refusal.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.reasoning_text.done",
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
        "response.mcp_list_tools.in_progress",
        "response.mcp_list_tools.completed",
        "response.mcp_list_tools.failed",
        "response.mcp_call.in_progress",
        "response.mcp_call.completed",
        "response.mcp_call.failed",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
    }
)
"""Known events that tell nothing an item does not."""


class ResponsesReader:
    """Puts the events of one response together. `heard` gets what is to be shown while it comes."""

    def __init__(self, heard: Heard, max_output_tokens: int | None, provider: str) -> None:
        self._heard = heard
        self._max_output_tokens = max_output_tokens
        self._provider = provider
        self._messages: list[str] = []
        self._items: list[JsonObject] = []
        self._response: JsonObject | None = None

    def receive(self, event: JsonObject) -> None:
        """Raises:
        HarnessError: the server tells of a failure.
        """
        kind = text_in(event.get("type"))
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                self._heard.text(plain_text_in(event.get("delta")), self._message(event.get("item_id")))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._heard.thinking(plain_text_in(event.get("delta")))
            case "response.reasoning_summary_part.added":
                self._heard.thinking("\n\n" if event.get("summary_index") else "")
            case "response.output_item.added":
                self._item_begins(object_in(event.get("item")))
            case "response.output_item.done":
                item = object_in(event.get("item"))
                self._items.append(item)
                self._item_ends(item)
            case "error" | "":
                raise error_in_stream(event, self._provider)
            case _ if kind in _ENDS:
                self._response = object_in(event.get("response"))
                if kind == "response.failed":
                    raise _failure(self._response, self._provider)
            case _ if kind not in _SHOWN_OTHERWISE:
                self._heard.unknown(kind)
            case _:
                pass

    def answer(self) -> ModelAnswer:
        """Raises:
        ProviderError: the stream ended before the response did.
        """
        response = self._response
        if response is None:
            raise ProviderError(f"{self._provider}'s answer broke off before its end", reason="network")
        told = objects_in(response.get("output"))
        items = told if len(told) >= len(self._items) else self._items
        usage = usage_of(response.get("usage"), names=_USAGE)
        at_limit = self._is_at_limit(response, usage)
        kept = _without_cut_calls(items, at_limit)
        said = tuple(_said(item) for item in kept if item.get("type") == "message")
        calls = tuple(_call(item) for item in kept if item.get("type") == "function_call")
        return ModelAnswer(
            said=said,
            calls=calls,
            asks=tuple(_approval(item) for item in kept if item.get("type") == "mcp_approval_request"),
            stop=_stop(response, kept, at_limit),
            usage=usage,
            native={"id": response.get("id"), "items": kept},
        )

    def _message(self, item_id: object) -> int:
        """The number of a message item; servers that name none mean the newest."""
        if isinstance(item_id, str) and item_id not in self._messages:
            self._messages.append(item_id)
        if isinstance(item_id, str):
            return self._messages.index(item_id)
        return max(0, len(self._messages) - 1)

    def _item_begins(self, item: JsonObject) -> None:
        item_id = item.get("id")
        if item.get("type") == "message":
            self._message(item_id)
        elif item.get("type") in ("web_search_call", "mcp_call"):
            self._heard.show(
                internal_tool_started(
                    plain_text_in(item_id),
                    plain_text_in(item.get("name")) or "web_search",
                    source=plain_text_in(item.get("server_label")) or None,
                )
            )

    def _item_ends(self, item: JsonObject) -> None:
        if item.get("type") not in ("web_search_call", "mcp_call"):
            return
        error = item.get("error")
        failed = error is not None or item.get("status") == "failed"
        result = InternalToolResult.FAILED if failed else InternalToolResult.OK
        text = plain_text_in(item.get("output")) or plain_text_in(object_in(error).get("message"))
        self._heard.show(internal_tool_finished(plain_text_in(item.get("id")), result, result_text=text or None))

    def _is_at_limit(self, response: JsonObject, usage: UsageInfo | None) -> bool:
        """Whether the answer was cut; some servers call a cut answer completed."""
        if object_in(response.get("incomplete_details")).get("reason") == "max_output_tokens":
            return True
        limit, used = self._max_output_tokens, usage.output_tokens if usage is not None else None
        return limit is not None and used is not None and used >= limit


def _without_cut_calls(items: Sequence[JsonObject], at_limit: bool) -> list[JsonObject]:
    """A call that was cut off is not run, and not passed back; neither is reasoning that led to nothing."""
    kept = [item for item in items if item.get("type") != "function_call" or not _is_cut(item, at_limit)]
    if len(kept) < len(items):
        while kept and kept[-1].get("type") == "reasoning":
            kept.pop()
    return kept


def _is_cut(item: JsonObject, at_limit: bool) -> bool:
    if item.get("status") == "incomplete":
        return True
    return at_limit and not is_json(text_in(item.get("arguments")) or "{}")


def _said(item: JsonObject) -> Said:
    parts = objects_in(item.get("content"))
    text = "".join(plain_text_in(part.get("text")) or plain_text_in(part.get("refusal")) for part in parts)
    return Said(text, _PHASES.get(text_in(item.get("phase"))))


def _call(item: JsonObject) -> CallMade:
    return CallMade(
        text_in(item.get("call_id")), text_in(item.get("name")), text_in(item.get("arguments")).strip() or "{}"
    )


def _approval(item: JsonObject) -> HostRequest:
    """A call of a delegated tool that the provider asks about before it runs it."""
    return HostRequest(
        kind=RequestKind.APPROVAL,
        peer_request_id=text_in(item.get("id")),
        tool_name=plain_text_in(item.get("name")),
        arguments_json=text_in(item.get("arguments")) or "{}",
        target=plain_text_in(item.get("server_label")) or None,
        options=[
            RequestOption(id=OptionKind.ALLOW_ONCE, kind=OptionKind.ALLOW_ONCE),
            RequestOption(id=OptionKind.DENY, kind=OptionKind.DENY),
        ],
    )


def _stop(response: JsonObject, items: Sequence[JsonObject], at_limit: bool) -> StopReason:
    if at_limit:
        return StopReason.MAX_TOKENS
    reason = object_in(response.get("incomplete_details")).get("reason")
    if reason == "content_filter" or any(part.get("type") == "refusal" for part in _message_parts(items)):
        return StopReason.REFUSAL
    return StopReason.MAX_TOKENS if response.get("status") == "incomplete" else StopReason.END_TURN


def _message_parts(items: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for item in items:
        if item.get("type") == "message":
            yield from objects_in(item.get("content"))


def _failure(response: JsonObject, provider: str) -> HarnessError:
    return error_in_stream({"error": response.get("error")}, provider)
