"""The I/O of both APIs: one request, its stream read to the end, errors as ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from connectors._json import JsonObject, object_in
from connectors.openai import chat_protocol, responses_protocol
from connectors.openai.chat_protocol import ChatReader
from connectors.openai.config import OpenAiConfig, Target
from connectors.openai.responses_reader import ResponsesReader
from harness.contract.delegation import Delegation
from harness.errors import ContextOverflow, HarnessError, InvalidArgument, PeerProtocolError, ProviderError
from harness.model_loop import Heard, ModelAnswer, ModelRequest
from harness.model_loop.provider_errors import error_in_stream, error_of
from harness.wire.sse import SseReader

if TYPE_CHECKING:
    import openai

NO_ENCRYPTED_REASONING = "encrypted content is not supported"


class OpenAiModel:
    """A `ChatModel` over the `openai` package. Retries are the loop's: the package makes none."""

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        config: OpenAiConfig,
        target: Target,
        *,
        internal_tools: Sequence[str] = (),
        delegation: Delegation | None = None,
    ) -> None:
        self._client = client
        self._config = config
        self._target = target
        self._internal_tools = internal_tools
        self._delegation = delegation
        self._wants_encrypted_reasoning = config.encrypted_reasoning
        self._context_window: int | None = None

    @property
    def origin(self) -> str:
        return responses_protocol.ORIGIN if self._config.api == "responses" else "openai.chat"

    @property
    def context_window(self) -> int | None:
        return self._context_window

    async def answer(self, request: ModelRequest, heard: Heard) -> ModelAnswer:
        if request.model is None:
            raise InvalidArgument("the connector 'openai' needs a 'model'")
        try:
            return await self._answer(request, heard)
        except ProviderError as error:
            if not self._wants_encrypted_reasoning or NO_ENCRYPTED_REASONING not in error.message.lower():
                raise
        # a model that does not reason: nothing was said yet, so the same request goes out without the wish
        self._wants_encrypted_reasoning = False
        return await self._answer(request, heard)

    async def _answer(self, request: ModelRequest, heard: Heard) -> ModelAnswer:
        import openai

        try:
            if self._config.api == "chat":
                return await self._chat(request, heard)
            return await self._responses(request, heard)
        except openai.APIStatusError as error:
            raise self._noted(
                error_of(error.status_code, _body(error), error.response.headers, self._server)
            ) from error
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            raise ProviderError(f"{self._server} cannot be reached: {cause}", reason="network") from error

    async def _chat(self, request: ModelRequest, heard: Heard) -> ModelAnswer:
        body = chat_protocol.request_body(request, self._config, self._target.quirks)
        reader = ChatReader(heard, request.max_output_tokens)
        create: Any = self._client.chat.completions.with_streaming_response.create
        heard.raw("sent", json.dumps(body))
        async with create(**_arguments(body, ("model", "messages"))) as response:
            await self._read(response, reader, heard)
        return reader.answer()

    async def _responses(self, request: ModelRequest, heard: Heard) -> ModelAnswer:
        body = responses_protocol.request_body(
            request,
            self._config,
            self._target.quirks,
            internal_tools=self._internal_tools,
            delegation=self._delegation,
            wants_encrypted_reasoning=self._wants_encrypted_reasoning,
        )
        reader = ResponsesReader(heard, request.max_output_tokens, self._server)
        create: Any = self._client.responses.with_streaming_response.create
        heard.raw("sent", json.dumps(body))
        async with create(**_arguments(body, ("model", "input"))) as response:
            await self._read(response, reader, heard)
        return reader.answer()

    async def _read(self, response: Any, reader: ChatReader | ResponsesReader, heard: Heard) -> None:
        """Reads the bytes ourselves: the package stops silently at a cut connection and tells no `[DONE]`."""
        import httpx2

        events = SseReader()
        try:
            async for chunk in response.iter_bytes():
                with heard.one_read():
                    for event in events.feed(chunk):
                        heard.raw("received", event.data.decode("utf-8", "replace"))
                        if event.data == b"[DONE]":
                            if isinstance(reader, ChatReader):
                                reader.done()
                            return
                        reader.receive(self._object(event.data))
        except httpx2.HTTPError as error:
            raise ProviderError(f"the connection to {self._server} broke: {error}", reason="network") from error

    def _object(self, data: bytes) -> JsonObject:
        """Raises:
        HarnessError: it tells of an error, or is no JSON.
        """
        try:
            value = object_in(json.loads(data))
        except (ValueError, RecursionError) as error:
            raise PeerProtocolError(f"{self._server} sent an event that is no JSON: {error}", line=data) from error
        if value.get("error") is not None and "type" not in value:
            raise self._noted(error_in_stream(value, self._server))
        return value

    def _noted(self, error: HarnessError) -> HarnessError:
        """An overflow tells how large the window is."""
        window = error.detail.get("context_window") if isinstance(error, ContextOverflow) else None
        if isinstance(window, int):
            self._context_window = window
        return error

    @property
    def _server(self) -> str:
        return "OpenAI" if self._target.quirks == "openai" else f"the server at '{self._target.url}'"


def _arguments(body: JsonObject, named: Sequence[str]) -> dict[str, Any]:
    """The package checks the named arguments; everything else goes out as it is."""
    rest = {name: value for name, value in body.items() if name not in named}
    return {"stream": True, **{name: body[name] for name in named}, "extra_body": rest}


def _body(error: openai.APIStatusError) -> Any:
    """The package shows the object below `error` only; other servers put the text elsewhere."""
    try:
        return error.response.json()
    except ValueError:
        return error.response.text
