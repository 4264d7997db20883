"""Events of the Messages API, Anthropic's own and other servers', into an answer (pure)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from connectors._json import JsonObject, compact_json, object_in, plain_text_in, text_in
from connectors._model_json import arguments_object, is_json, whole_number
from harness.contract.output import InternalToolResult, StopReason
from harness.contract.usage import UsageInfo
from harness.contract.value import JsonValue
from harness.errors import ProviderError
from harness.model_loop import CallMade, Heard, ModelAnswer, Said
from harness.model_loop.provider_errors import error_in_stream
from harness.turn.events import internal_tool_finished, internal_tool_started

_STOPS = {
    "max_tokens": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,
    "refusal": StopReason.REFUSAL,
}
_CALLS = ("tool_use", "server_tool_use")


@dataclass(slots=True)
class _Block:
    """A content block as it began, and what its deltas added."""

    start: JsonObject
    text: list[str] = field(default_factory=list[str])
    signature: str = ""
    citations: list[JsonValue] = field(default_factory=list[JsonValue])

    @property
    def kind(self) -> str:
        return text_in(self.start.get("type"))

    @property
    def arguments_json(self) -> str:
        """The text the wire carried, else the object the block began with."""
        return "".join(self.text).strip() or compact_json(self.start.get("input") or {})

    def native(self) -> JsonObject:
        """The whole block, to be passed back."""
        match self.kind:
            case "text":
                cited: JsonObject = {"citations": self.citations} if self.citations else {}
                return self.start | {"text": "".join(self.text)} | cited
            case "thinking":
                return self.start | {"thinking": "".join(self.text), "signature": self.signature}
            case kind if kind in _CALLS:
                return self.start | {"input": arguments_object(self.arguments_json)}
            case _:
                return self.start


class MessageReader:
    """Puts the events of one message together. `heard` gets what is to be shown while it comes."""

    def __init__(self, heard: Heard, provider: str) -> None:
        self._heard = heard
        self._provider = provider
        self._blocks: dict[JsonValue, _Block] = {}
        self._usage: JsonObject = {}
        self._stop = ""
        self._has_ended = False

    def receive(self, data: bytes) -> None:
        """Raises:
        HarnessError: the event tells of a failure, or is no JSON.
        """
        try:
            event = object_in(json.loads(data))
        except (ValueError, RecursionError) as error:
            text = f"{self._provider} sent an event that is no JSON: {data[:200]!r}"
            raise ProviderError(text, reason="server") from error
        match event.get("type"):
            case "message_start":
                self._usage |= object_in(object_in(event.get("message")).get("usage"))
            case "content_block_start":
                self._begin(event.get("index"), object_in(event.get("content_block")))
            case "content_block_delta":
                self._add(event.get("index"), object_in(event.get("delta")))
            case "message_delta":
                self._usage |= {
                    name: value for name, value in object_in(event.get("usage")).items() if value is not None
                }
                self._stop = text_in(object_in(event.get("delta")).get("stop_reason")) or self._stop
            case "message_stop":
                self._has_ended = True
            case "content_block_stop" | "ping":
                pass
            case "error":
                raise error_in_stream(event, self._provider)
            case None if "error" in event:
                raise error_in_stream(event, self._provider)
            case kind:
                self._heard.unknown(str(kind))

    def answer(self) -> ModelAnswer:
        """Raises:
        ProviderError: the stream ended before the message did.
        """
        if not self._has_ended and not self._stop:
            raise ProviderError(f"{self._provider}'s answer broke off before its end", reason="network")
        blocks = list(self._blocks.values())
        if self._stop == "max_tokens" and blocks and blocks[-1].kind == "tool_use":
            # a call that was cut off is neither run nor passed back
            blocks = blocks if is_json(blocks[-1].arguments_json) and blocks[-1].text else blocks[:-1]
        text = "".join("".join(block.text) for block in blocks if block.kind == "text")
        return ModelAnswer(
            said=(Said(text),) if text else (),
            calls=tuple(
                CallMade(text_in(block.start.get("id")), text_in(block.start.get("name")), block.arguments_json)
                for block in blocks
                if block.kind == "tool_use"
            ),
            stop=_STOPS.get(self._stop, StopReason.END_TURN),
            usage=_usage_of(self._usage),
            native=[native for block in blocks if _may_go_back(native := block.native())],
            must_continue=self._stop == "pause_turn",
        )

    def _begin(self, index: JsonValue, start: JsonObject) -> None:
        block = _Block(start)
        self._blocks[index] = block
        match block.kind:
            case "text":
                block.text.append(plain_text_in(start.get("text")))
                self._heard.text(block.text[0])
            case "thinking":
                block.text.append(plain_text_in(start.get("thinking")))
                block.signature = text_in(start.get("signature"))
            case "server_tool_use":
                self._heard.show(
                    internal_tool_started(plain_text_in(start.get("id")), plain_text_in(start.get("name")))
                )
            case kind if kind.endswith("_tool_result"):
                failed = "error_code" in object_in(start.get("content"))
                result = InternalToolResult.FAILED if failed else InternalToolResult.OK
                self._heard.show(internal_tool_finished(plain_text_in(start.get("tool_use_id")), result))
            case _:
                pass

    def _add(self, index: JsonValue, delta: JsonObject) -> None:
        block = self._blocks.setdefault(index, _Block({"type": "text"}))
        match delta.get("type"):
            case "text_delta":
                text = plain_text_in(delta.get("text"))
                block.text.append(text)
                self._heard.text(text)
            case "thinking_delta":
                text = plain_text_in(delta.get("thinking"))
                block.text.append(text)
                self._heard.thinking(text)
            case "input_json_delta":
                block.text.append(text_in(delta.get("partial_json")))
            case "signature_delta":
                block.signature += text_in(delta.get("signature"))
            case "citations_delta":
                block.citations.append(delta.get("citation"))
            case kind:
                self._heard.unknown(str(kind))


def _may_go_back(block: JsonObject) -> bool:
    """The API refuses empty texts, and thinking without its signature."""
    if block.get("type") == "text":
        return bool(text_in(block.get("text")).strip())
    return block.get("type") != "thinking" or bool(block.get("signature"))


def _usage_of(usage: JsonObject) -> UsageInfo | None:
    """The API counts tokens read from and written to the cache beside the input; here they are part of it."""
    if not usage:
        return None
    plain = whole_number(usage.get("input_tokens"))
    read = whole_number(usage.get("cache_read_input_tokens"))
    written = whole_number(usage.get("cache_creation_input_tokens"))
    total = None if plain is None else plain + (read or 0) + (written or 0)
    return UsageInfo(
        input_tokens=total,
        cached_input_tokens=read,
        cache_write_tokens=written,
        output_tokens=whole_number(usage.get("output_tokens")),
    )
