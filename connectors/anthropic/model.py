"""The I/O of `/v1/messages`: one request, its events read to the end."""

from __future__ import annotations

import json
from collections.abc import Sequence

from connectors._provider_http import ProviderClient
from connectors.anthropic.config import AnthropicConfig
from connectors.anthropic.protocol import ORIGIN, request_body
from connectors.anthropic.reader import MessageReader
from harness.errors import ContextOverflow, InvalidArgument
from harness.model_loop import Heard, ModelAnswer, ModelRequest
from harness.wire.sse import SseReader


class AnthropicModel:
    """A `ChatModel` over the Messages API."""

    def __init__(
        self,
        client: ProviderClient,
        config: AnthropicConfig,
        *,
        window: int | None,
        internal_tools: Sequence[str] = (),
    ) -> None:
        self._client = client
        self._config = config
        self._window = window
        self._internal_tools = internal_tools

    @property
    def origin(self) -> str:
        return ORIGIN

    @property
    def context_window(self) -> int | None:
        return self._window

    async def answer(self, request: ModelRequest, heard: Heard) -> ModelAnswer:
        if request.model is None:
            raise InvalidArgument("the connector 'anthropic' needs a 'model'")
        body = request_body(request, self._config, self._internal_tools)
        reader, events = MessageReader(heard, self._client.provider), SseReader()
        heard.raw("sent", json.dumps(body))
        try:
            async with self._client.stream("/v1/messages", body) as chunks:
                async for chunk in chunks:
                    with heard.one_read():
                        for event in events.feed(chunk):
                            heard.raw("received", event.data.decode("utf-8", "replace"))
                            reader.receive(event.data)
        except ContextOverflow as error:
            window = error.detail.get("context_window")
            self._window = window if isinstance(window, int) else self._window
            raise
        return reader.answer()
