"""A connector of your own: any server that speaks Chat Completions, without streaming.

The agent loop is the harness's (retries, limits, histories, resuming); a connector says what its peer can do and how
one model call looks on the wire. `try_tiny_connector.py` tries it with every scenario of the conformance kit.
"""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager

import httpx2

from harness.connector import SessionLog
from harness.contract import ConversationOptions, JsonValue, LlmCapabilities, ToolDescriptor, UsageInfo, text_of
from harness.contract.delegation import Delegation
from harness.contract.output import StopReason
from harness.errors import ProviderError
from harness.model_loop import (
    AssistantMessage,
    CallMade,
    Heard,
    LoopConfig,
    ModelAnswer,
    ModelRequest,
    ModelSession,
    Said,
    ToolMessage,
    config_of,
    text_said,
)

STOPS = {"length": StopReason.MAX_TOKENS, "content_filter": StopReason.REFUSAL}
REASONS = {401: "auth", 429: "rate_limit"}


class TinyConfig(LoopConfig):
    base_url: str


class TinyModel:
    origin = "tiny"
    context_window = None

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http

    async def answer(self, request: ModelRequest, heard: Heard) -> ModelAnswer:
        body = {"model": request.model, "messages": [*messages(request)], "tools": [*map(function, request.tools)]}
        try:
            reply = await self.http.post("/chat/completions", content=json.dumps(body))
        except httpx2.HTTPError as error:
            raise ProviderError(f"no answer: {error}", reason="network") from error
        if reply.is_error:
            reason, wait = REASONS.get(reply.status_code, "server"), reply.headers.get("retry-after")
            told = {"status": reply.status_code, "retry_after_ms": None if wait is None else int(float(wait) * 1000)}
            raise ProviderError(reply.json()["error"]["message"], reason=reason, **told)
        choice, used = reply.json()["choices"][0], reply.json()["usage"]
        text, calls = choice["message"].get("content") or "", choice["message"].get("tool_calls") or []
        heard.text(text)
        return ModelAnswer(
            said=(Said(text),) if text else (),
            calls=tuple(CallMade(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls),
            stop=STOPS.get(choice["finish_reason"], StopReason.END_TURN),
            usage=UsageInfo(input_tokens=used["prompt_tokens"], output_tokens=used["completion_tokens"]),
        )


def function(tool: ToolDescriptor) -> JsonValue:
    told = {"name": tool.name, "description": tool.description, "parameters": json.loads(tool.input_schema_json)}
    return {"type": "function", "function": told}


def made(call: CallMade) -> JsonValue:
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.tool_name, "arguments": call.arguments_json},
    }


def messages(request: ModelRequest) -> Iterator[JsonValue]:
    if request.system:
        yield {"role": "system", "content": request.system}
    for message in request.messages:
        if isinstance(message, AssistantMessage):
            yield {"role": "assistant", "content": text_said(message.said), "tool_calls": [*map(made, message.calls)]}
        elif isinstance(message, ToolMessage):
            for one in message.results:
                yield {"role": "tool", "tool_call_id": one.call_id, "content": text_of(one.content)}
        else:
            yield {"role": "user", "content": text_of(message.content)}


class TinyConnector:
    name = "tiny"
    variants: Mapping[str, Mapping[str, JsonValue]] = {}
    restricted_options = frozenset({"base_url"})

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        config_of(TinyConfig, options, self.name)
        return LlmCapabilities(
            supports_tools=True,
            supports_parallel_tool_calls=True,
            parallel="all",
            routable_request_kinds=["tool_call"],
            resume="exact",
            seed_history="exact",
            result_order="call",
            tool_error_flag="text_only",
            reports_usage=True,
            turn_options=["model", "tool_names"],
        )

    @asynccontextmanager
    async def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[ModelSession]:
        config = config_of(TinyConfig, options, self.name)
        async with httpx2.AsyncClient(base_url=config.base_url, timeout=None) as http:
            yield ModelSession(TinyModel(http), config, options, log)
