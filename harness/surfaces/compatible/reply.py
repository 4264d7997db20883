"""A reply: it grows in the server's task group, and whoever asked for it reads it from its beginning.

A reply belongs to no HTTP request. A client that repeats a request after a timeout joins the reply that is under way,
and every reader gets all parts in order, however late it comes.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from harness.contract.content import TextBlock
from harness.contract.options import HistoryMessage, HistoryRole
from harness.contract.tools import ToolCall
from harness.contract.usage import UsageInfo
from harness.errors import HarnessError
from harness.surfaces.compatible.exchange import (
    GAP,
    CallPart,
    DiscardedPart,
    ReplyEnd,
    ReplyEnded,
    ReplyFailed,
    ReplyPart,
    TextPart,
    ThinkingPart,
)
from harness.surfaces.compatible.reply_ids import ReplyId

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence


@dataclass(frozen=True, slots=True)
class WholeReply:
    """A good reply that is over, without what the model took back."""

    text: str
    thinking: str
    calls: tuple[ToolCall, ...]
    end: ReplyEnd
    usage: UsageInfo | None


@dataclass(eq=False)
class Reply:
    """One answer of a model, as its clients see an agent.

    `reply_id` and `created_at` are for the wires: every reader of a reply tells the same ones, when it has begun.
    """

    model: str
    """As the client named it."""
    conversation_id: str = ""
    """Set when the reply has begun."""
    ignored: tuple[str, ...] = ()
    """What `X-Harness-Ignored` names."""
    reply_id: str = ""
    """Set when the reply has begun."""
    created_at: int = field(default_factory=lambda: int(time.time()))
    """Seconds since the epoch."""
    parts: list[ReplyPart] = field(default_factory=list[ReplyPart])
    readers: int = 0
    was_streamed: bool = False
    """Whether a client has had the beginning of a stream: then a departure is a cancel."""
    was_told: bool = False
    """Whether a client has had all of it."""
    _has_begun: bool = False
    _changed: anyio.Event = field(default_factory=anyio.Event)

    # for the wires

    @property
    def is_over(self) -> bool:
        return bool(self.parts) and isinstance(self.parts[-1], ReplyEnded | ReplyFailed)

    async def begun(self) -> None:
        """Returns when the conversation has taken the request; from then on headers may be sent.

        Raises:
            HarnessError: it was refused, and nothing was changed.
        """
        while not self._has_begun and not self.is_over:
            await self._changed.wait()
        if not self._has_begun:
            self._raise_failure()

    async def has_grown(self, number: int) -> None:
        """Returns when there are more than `number` parts."""
        while len(self.parts) <= number:
            await self._changed.wait()

    @contextmanager
    def read(self) -> Generator[None]:
        """Somebody reads while the context lasts; a reply that nobody reads is cancelled after a grace time."""
        self.readers += 1
        self._note()
        try:
            yield
        finally:
            self.readers -= 1
            self._note()

    async def follow(self) -> AsyncGenerator[ReplyPart]:
        """Every part from the beginning to the last one, which is `ReplyEnded` or `ReplyFailed`.

        Within `read`, else the reply may be cancelled for want of a reader.
        """
        number = 0
        while number < len(self.parts) or not self.is_over:
            await self.has_grown(number)
            yield self.parts[number]
            number += 1

    async def whole_or_broken(self) -> None:
        """Returns when it is over."""
        while not self.is_over:
            await self._changed.wait()

    async def whole(self) -> WholeReply:
        """The reply when it is over.

        Raises:
            HarnessError: it broke.
        """
        await self.whole_or_broken()
        self._raise_failure()
        ended = self.parts[-1]
        assert isinstance(ended, ReplyEnded)
        counted = self._counted()
        return WholeReply(
            text="".join(part.text for part in counted if isinstance(part, TextPart)),
            thinking="".join(part.text for part in counted if isinstance(part, ThinkingPart)),
            calls=self.calls,
            end=ended.end,
            usage=ended.usage,
        )

    # for whoever makes it grow

    def begin(self, reply_id: ReplyId, ignored: Sequence[str]) -> None:
        self.reply_id, self.conversation_id = str(reply_id), reply_id.conversation_id
        self.ignored, self._has_begun = tuple(ignored), True
        self._note()

    def add(self, *parts: ReplyPart) -> None:
        if parts:
            self.parts += parts
            self._note()

    def fail(self, error: HarnessError) -> None:
        if not self.is_over:
            self.add(ReplyFailed(error))

    @property
    def has_failed(self) -> bool:
        return bool(self.parts) and isinstance(self.parts[-1], ReplyFailed)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part.call for part in self.parts if isinstance(part, CallPart))

    def messages(self) -> list[HistoryMessage]:
        """The assistant message that a client has now: as it was streamed, and without what was taken back."""
        texts = {
            "".join(part.text for part in parts if isinstance(part, TextPart))
            for parts in (self.parts, self._counted())
        }
        calls = list(self.calls)
        return [
            HistoryMessage(role=HistoryRole.ASSISTANT, content=[TextBlock(text=text)], tool_calls=calls)
            for text in sorted(texts)
        ]

    async def left(self, grace_seconds: float, stream_grace_seconds: float) -> None:
        """Returns when nobody has read it for the grace time."""
        while True:
            while self.readers:
                await self._changed.wait()
            with anyio.move_on_after(stream_grace_seconds if self.was_streamed else grace_seconds) as waiting:
                while not self.readers:
                    await self._changed.wait()
            if waiting.cancelled_caught:
                return

    def _counted(self) -> list[ReplyPart]:
        counted: list[ReplyPart] = []
        for part in self.parts:
            if isinstance(part, DiscardedPart):
                gone = part.item_id
                counted = [
                    one for one in counted if not (isinstance(one, TextPart | ThinkingPart) and one.item_id == gone)
                ]
            else:
                counted.append(part)
        if len(counted) < len(self.parts):  # what was to follow the last gap may be among what was taken back
            last = max((n for n, part in enumerate(counted) if isinstance(part, TextPart)), default=None)
            if last is not None and _is_gap(counted[last]):
                del counted[last]
        return counted

    def _raise_failure(self) -> None:
        if self.parts and isinstance(failed := self.parts[-1], ReplyFailed):
            raise failed.error

    def _note(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _is_gap(part: ReplyPart) -> bool:
    return isinstance(part, TextPart) and part.text == GAP
