"""One HTTP request as an operation sees it: who calls, with what; and the table's row that leads to it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from harness.contract.conversational_llm import ConversationalLLM, ConversationDirectory
from harness.contract.state import TurnState
from harness.contract.value import Value
from harness.errors import ConnectorUnavailable, HarnessError, Internal, InvalidArgument
from harness.settings import Rights
from harness.surfaces.compatible.settings import CompatibleSettings
from harness.surfaces.problems import problem_response
from harness.surfaces.tokens import token_of
from harness.surfaces.waiters import Waiters
from harness.wire.bodies import ConnectorInfo
from harness.wire.hops import HOPS_HEADER, read_hops
from harness.wire.json_text import read_json, write_json

V = TypeVar("V", bound=Value)
JSON_TYPE = "application/json"
MAX_WAIT_MS = 60_000
DEFAULT_MAX_BODY_BYTES = 256 * 1024 * 1024

logger = logging.getLogger(__name__)


class OwnedLLM(ConversationalLLM, ConversationDirectory, Protocol):
    """What a surface gets after authentication."""


class SharedHarness(Protocol):
    """Gives each owner their own view."""

    def for_owner(self, owner: str, rights: Rights, hops: Sequence[str] = ()) -> OwnedLLM: ...


@dataclass(frozen=True, slots=True)
class Served:
    """What the operations of one server share."""

    harness: SharedHarness
    waiters: Waiters
    connectors: tuple[ConnectorInfo, ...] = ()
    heartbeat_seconds: float = 15.0
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES
    compatible: CompatibleSettings = field(default_factory=CompatibleSettings)


class Call:
    """One request to one operation."""

    def __init__(self, served: Served, http_request: Request) -> None:
        token = token_of(http_request)
        self.served = served
        self.http_request = http_request
        hops = read_hops(http_request.headers.get(HOPS_HEADER))
        self.llm = served.harness.for_owner(token.owner, token.rights, hops)

    @property
    def conversation_id(self) -> str:
        return str(self.http_request.path_params["conversation_id"])

    @property
    def turn_id(self) -> str:
        return str(self.http_request.path_params["turn_id"])

    async def body(self, kind: type[V]) -> V:
        """The body as a value.

        Raises:
            InvalidArgument: it is no such value; the message names the field.
        """
        return read_json(kind, await self.body_bytes())

    async def optional_body(self, kind: type[V]) -> V | None:
        data = await self.body_bytes()
        return read_json(kind, data) if data else None

    async def poll_turn(
        self, conversation_id: str, turn_id: str, since_sequence_no: int, max_wait_ms: int, max_items: int
    ) -> TurnState:
        """The turn's state. A wait is bounded, and ends early when the client leaves or the server stops.

        The body must have been read before.
        """
        if max_wait_ms > 0:
            wait_ms = min(max_wait_ms, MAX_WAIT_MS)
            async with self.served.waiters.parked(self.http_request.receive):
                return await self.llm.poll_turn(conversation_id, turn_id, since_sequence_no, wait_ms, max_items)
        # also when the wait above was cut short: because the server stops, or because nobody is left to read this
        return await self.llm.poll_turn(conversation_id, turn_id, since_sequence_no, 0, max_items)

    def number(self, name: str, default: int, *, minimum: int = 0) -> int:
        """A query parameter."""
        text = self.http_request.query_params.get(name)
        return default if text is None else whole_number(text, f"query parameter '{name}'", minimum=minimum)

    async def body_bytes(self) -> bytearray:
        """The body as it is, bounded."""
        data = bytearray()
        async for chunk in self.http_request.stream():
            data += chunk
            if len(data) > self.served.max_body_bytes:
                raise InvalidArgument(f"the body is larger than 'max_body_bytes' ({self.served.max_body_bytes})")
        return data


def whole_number(text: str, what: str, *, minimum: int = 0) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= minimum):
        raise InvalidArgument(f"{what} must be a whole number of at least {minimum}, not '{text[:40]}'")
    return int(text)


Answer: TypeAlias = Value | Response | None


@dataclass(frozen=True, slots=True)
class Operation:
    """A row of a surface's table: where it is, what it takes and gives, and who answers it."""

    method: str
    path: str
    summary: str
    answer: Callable[[Call], Awaitable[Answer]]
    takes: type[Value] | None = None
    gives: type[Value] | None = None
    status: int = 200
    starts_work: bool = False
    """Refused while the server is stopping."""

    def endpoint(self, served: Served) -> Callable[[Request], Awaitable[Response]]:
        """The same for Starlette: values become JSON, errors become problems."""

        async def answer(http_request: Request) -> Response:
            try:
                if self.starts_work and served.waiters.settled:
                    raise ConnectorUnavailable("this server is stopping", reason="stopping")
                given = await self.answer(Call(served, http_request))
            except HarnessError as error:
                return problem_response(error)
            except ClientDisconnect:
                return Response(status_code=499)  # nobody reads it
            except Exception:
                logger.exception("'%s %s' failed", self.method, self.path)
                return problem_response(Internal("an internal error; the server's log has the details"))
            if isinstance(given, Response):
                return given
            if given is None:
                return Response(status_code=204)
            return Response(write_json(given), self.status, media_type=JSON_TYPE)

        return answer
