"""The I/O of `/api/chat`: looks at the model once, loads it, streams answers."""

from __future__ import annotations

import json
import time

from connectors._json import object_in, objects_in, text_in
from connectors._lines import LineFramer
from connectors._model_json import whole_number
from connectors._provider_http import ProviderClient
from connectors.ollama.config import DEFAULT_MODEL, OllamaConfig
from connectors.ollama.protocol import (
    ORIGIN,
    ChatReader,
    ModelFacts,
    facts_of,
    load_body,
    malformed,
    request_body,
)
from harness.connector import ModelInfo, PullProgress
from harness.errors import ConnectorUnavailable, ProviderError
from harness.model_loop import Heard, ModelAnswer, ModelRequest
from harness.model_loop.provider_errors import error_in_stream
from harness.turn.events import notice


class OllamaModel:
    """A `ChatModel` over Ollama's native API. Each model is looked at once per conversation."""

    def __init__(self, client: ProviderClient, config: OllamaConfig) -> None:
        self._client = client
        self._config = config
        self._facts: dict[str, ModelFacts] = {}
        self._loaded: set[str] = set()
        self._num_ctx = config.num_ctx

    @property
    def origin(self) -> str:
        return ORIGIN

    @property
    def context_window(self) -> int | None:
        return self._num_ctx

    async def answer(self, request: ModelRequest, heard: Heard) -> ModelAnswer:
        model = request.model or DEFAULT_MODEL
        self._config.check_model(model)
        facts = await self._look_at(model)
        body = request_body(request, self._config, facts, self._num_ctx) | {"model": model}
        await self._load(model, heard)
        reader, lines = ChatReader(heard, request, self._num_ctx), LineFramer()
        heard.raw("sent", json.dumps(body))
        try:
            async with self._client.stream("/api/chat", body) as chunks:
                async for chunk in chunks:
                    with heard.one_read():
                        for line in lines.feed(chunk):
                            heard.raw("received", line.decode("utf-8", "replace"))
                            if line.strip():
                                reader.receive(line)
        except ProviderError as error:
            raise malformed(error) from error
        return reader.answer()

    async def _look_at(self, model: str) -> ModelFacts:
        if model not in self._facts:
            self._facts[model] = facts = await show(self._client, model)
            self._num_ctx = min(self._config.num_ctx, facts.window or self._config.num_ctx)
        return self._facts[model]

    async def _load(self, model: str, heard: Heard) -> None:
        """Loads the model before a message waits for it; loading may take minutes."""
        if not self._config.warm_up or model in self._loaded:
            return
        begun = time.monotonic()
        async with self._client.stream("/api/chat", load_body(model, self._config, self._num_ctx)) as chunks:
            async for _ in chunks:
                pass
        self._loaded.add(model)
        seconds = time.monotonic() - begun
        heard.show(
            notice("peer_started", f"ollama loaded '{model}' with {self._num_ctx} tokens, ready in {seconds:.1f} s")
        )


async def show(client: ProviderClient, model: str) -> ModelFacts:
    """Raises:
    ConnectorUnavailable: the server has no such model, or there is no server.
    """
    try:
        return facts_of(await client.lookup("POST", "/api/show", {"model": model}), model)
    except ProviderError as error:
        if error.detail.get("status") == 404:
            raise ConnectorUnavailable(
                f"Ollama has no model '{model}'; type: ollama pull {model}", model=model
            ) from error
        if error.detail.get("reason") == "network":
            raise ConnectorUnavailable(f"{error.message}; type: ollama serve") from error
        raise


async def listed(client: ProviderClient) -> list[ModelInfo]:
    """What the server has; windows and capabilities as it tells them."""
    models: list[ModelInfo] = []
    for told in objects_in(object_in(await client.lookup("GET", "/api/tags")).get("models")):
        name, details = text_in(told.get("name")), object_in(told.get("details"))
        shown = await client.lookup("POST", "/api/show", {"model": name})
        facts = facts_of(shown, name)
        able = {"tools": facts.calls_tools, "thinking": facts.thinks, "vision": facts.sees}
        about = " ".join(text_in(details.get(part)) for part in ("family", "parameter_size", "quantization_level"))
        capabilities = tuple(word for word, is_so in able.items() if is_so)
        models.append(ModelInfo(name, whole_number(told.get("size")), facts.window, capabilities, about.strip()))
    return models


async def pull(client: ProviderClient, model: str, progress: PullProgress) -> None:
    """Raises:
    ProviderError: the registry or the server failed; what is there is kept and a later pull goes on from it.
    """
    lines = LineFramer()
    status = ""
    async with client.stream("/api/pull", {"model": model, "stream": True}) as chunks:
        async for chunk in chunks:
            for line in lines.feed(chunk):
                told = object_in(json.loads(line or b"{}"))
                if "error" in told:
                    raise error_in_stream(told, "Ollama")
                status = text_in(told.get("status")) or status
                progress(status, whole_number(told.get("completed")), whole_number(told.get("total")))
    if status != "success":
        raise ProviderError(f"the pull of '{model}' broke off at '{status}'", reason="network")


async def version(client: ProviderClient) -> str:
    """Raises:
    ConnectorUnavailable: no server answers.
    """
    try:
        return text_in(object_in(await client.lookup("GET", "/api/version")).get("version"))
    except ProviderError as error:
        raise ConnectorUnavailable(f"{error.message}; type: ollama serve") from error
