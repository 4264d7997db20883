"""The embedded model: loaded once per process and file, shared by all conversations. Generation runs in threads."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.from_thread
import anyio.to_thread

from connectors._json import JsonObject
from connectors.local.protocol import Spoken
from harness.contract.value import JsonValue

Said = Callable[[str], None]
THREADS = max(1, (os.cpu_count() or 2) // 2)
"""Physical cores, as a rule. The threads wait for each other by spinning: on a busy machine fewer are faster."""


class Engine:
    """One loaded model. `xllamacpp` lets go of the interpreter while it computes."""

    def __init__(self, server: Any, file: Path, slots: int) -> None:
        self._server = server
        self._free = anyio.CapacityLimiter(slots)
        self.file = file

    @staticmethod
    async def load(file: Path, window: int, slots: int) -> Engine:
        """Takes seconds for a small file, more for a large one."""
        server = await anyio.to_thread.run_sync(_start, file, window, slots)
        return Engine(server, file, slots)

    async def generate(self, body: JsonObject, said: Said | None = None) -> Spoken:
        """One generation; cancelling it stops the model at the next token.

        Raises:
            HarnessError: the model refused the request.
        """
        spoken = await anyio.to_thread.run_sync(self._generate, body, said, limiter=self._free)
        if spoken.error is not None:
            raise spoken.error
        return spoken

    def _generate(self, body: JsonObject, said: Said | None) -> Spoken:
        spoken = Spoken()

        def on_chunk(chunk: JsonValue) -> bool:
            """True stops the generation."""
            try:
                anyio.from_thread.check_cancelled()
            except BaseException:  # of the waiting task; it is raised there when this thread returns
                return True
            for one in cast(list[JsonValue], chunk) if isinstance(chunk, list) else [chunk]:
                piece = spoken.receive(one)
                if piece and said is not None:
                    anyio.from_thread.run_sync(said, piece)
            return spoken.error is not None

        whole = {**body, "stream": True, "stream_options": {"include_usage": True}}
        answer: JsonValue = self._server.handle_chat_completions(whole, on_chunk)
        if isinstance(answer, dict):
            spoken.receive(answer)
        return spoken


def _start(file: Path, window: int, slots: int) -> Any:
    """The package always listens as well: on loopback, on a free port, behind a key that nobody learns."""
    package: Any = import_module("xllamacpp")
    wanted = package.CommonParams()
    wanted.model.path = str(file)
    wanted.n_ctx = window * slots
    wanted.n_parallel = slots
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = THREADS
    wanted.n_gpu_layers = 0
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = 0
    wanted.api_keys = [secrets.token_hex(16)]
    wanted.use_jinja = True
    wanted.warmup = wanted.ui = False
    wanted.verbosity = 0
    return package.Server(wanted)


class Engines:
    """Every model this process has loaded."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[Path, int, int], Engine] = {}
        self._loading = anyio.Lock()

    async def engine(self, file: Path, window: int, slots: int) -> Engine:
        async with self._loading:
            key = file, window, slots
            if key not in self._loaded:
                self._loaded[key] = await Engine.load(*key)
            return self._loaded[key]
