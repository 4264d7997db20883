"""Does for the agent what it may have its client do: each call is a task, an act waits for the host's approval."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio.to_thread
from anyio.abc import TaskGroup

from connectors._json import JsonObject, number_in, plain_text_in
from connectors._jsonrpc import Asked
from connectors.acp import client_calls as calls
from connectors.acp.client_calls import Refusal
from connectors.acp.client_requests import ClientRequests
from connectors.acp.files import ClientFiles
from connectors.acp.terminals import Terminals
from harness.connector import TurnSink
from harness.wire.json_rpc import METHOD_NOT_FOUND, REQUEST_CANCELLED


class ClientSide:
    """Belongs to one session; `sink` gives the running turn's, `flush` writes what was answered."""

    def __init__(
        self,
        requests: ClientRequests,
        tasks: TaskGroup,
        root: Path,
        terminals: Terminals,
        *,
        sink: Callable[[], TurnSink | None],
        flush: Callable[[], object],
    ) -> None:
        self._requests = requests
        self._tasks = tasks
        self._files = ClientFiles(root)
        self._terminals = terminals
        self._sink = sink
        self._flush = flush

    def has_read(self) -> None:
        """Lines of the agent have come."""
        for asked in self._requests.take_calls():
            self._tasks.start_soon(self._serve, asked)

    def stop(self) -> None:
        """The turn is cancelled."""
        self._terminals.stop()

    # inside

    async def _serve(self, asked: Asked) -> None:
        try:
            result = await self._done(asked)
        except Refusal as refusal:
            self._requests.refuse(asked, refusal.code, refusal.message)
        else:
            self._requests.answer(asked, result)
        self._flush()

    async def _done(self, asked: Asked) -> JsonObject:
        params, terminals = asked.params, self._terminals
        name = plain_text_in(params.get("terminalId"))
        match asked.method:
            case calls.READ:
                return {"content": await self._read(params)}
            case calls.WRITE:
                write = calls.write_of(await self._approved(asked))
                await anyio.to_thread.run_sync(self._files.write, write)
                return {}
            case calls.CREATE:
                return {"terminalId": await self._create(await self._approved(asked))}
            case calls.OUTPUT:
                return terminals.output(name)
            case calls.WAIT:
                return await terminals.exit_status(name)
            case calls.KILL:
                await terminals.kill(name)
                return {}
            case calls.RELEASE:
                await terminals.release(name)
                return {}
            case _:
                raise Refusal(METHOD_NOT_FOUND, f"'{asked.method}' is not supported")

    async def _read(self, params: JsonObject) -> str:
        line, limit = number_in(params.get("line")), number_in(params.get("limit"))
        read = partial(
            self._files.read,
            plain_text_in(params.get("path")),
            line=None if line is None else int(line),
            limit=None if limit is None else int(limit),
        )
        return await anyio.to_thread.run_sync(read)

    async def _create(self, params: JsonObject) -> str:
        command, limit = calls.command_of(params), number_in(params.get("outputByteLimit"))
        cwd = await anyio.to_thread.run_sync(self._files.directory, command.cwd)
        return await self._terminals.create(command, cwd, limit=None if limit is None else int(limit))

    async def _approved(self, asked: Asked) -> JsonObject:
        """What the host lets be done; a write that it has allowed to the letter already is not asked for again."""
        request = calls.approval_of(asked)
        if asked.method == calls.WRITE and self._requests.was_allowed(calls.write_of(asked.params)):
            return asked.params
        sink = self._sink()
        if sink is None or not self._requests.waits_for(asked):
            raise Refusal(REQUEST_CANCELLED, "the turn is over")
        async with sink.ask(request) as response:
            pass
        params = calls.approved(asked, request, response)
        if not self._requests.waits_for(asked):
            raise Refusal(REQUEST_CANCELLED, "the turn is over")
        return params
