"""What is known of one token's conversations and replies; in memory only, and bounded (no I/O)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from harness.surfaces.call import OwnedLLM
from harness.surfaces.compatible.exchange import ModelRequest, Terms
from harness.surfaces.compatible.reply import Reply
from harness.surfaces.compatible.threads import Thread


@dataclass(eq=False)
class _Recorded:
    reply: Reply
    until: float | None = None
    """When an equal request no longer gets it; null while it grows."""


@dataclass(eq=False)
class Room:
    """One token's part of a desk."""

    llm: OwnedLLM
    """Of the token's owner."""
    threads: dict[str, Thread] = field(default_factory=dict[str, Thread])
    _replies: dict[tuple[str, Terms], _Recorded] = field(default_factory=dict[tuple[str, Terms], _Recorded])

    def equal(self, request: ModelRequest, terms: Terms, now: float) -> Reply | None:
        """The reply that an equal request gets, or got a moment ago."""
        found = self._replies.get(_key(request, terms))
        if found is None or not request.fingerprint:
            return None
        if found.until is None:
            return found.reply
        return found.reply if now < found.until and not terms.wants_new else None

    def note(self, request: ModelRequest, terms: Terms, reply: Reply) -> None:
        self._replies[_key(request, terms)] = _Recorded(reply)

    def record(self, request: ModelRequest, terms: Terms, reply: Reply, until: float, limit: int) -> None:
        """The reply is over: it is kept until then; one that broke is not, so that a repetition tries again."""
        key = _key(request, terms)
        if (found := self._replies.get(key)) is None or found.reply is not reply:
            return
        del self._replies[key]
        if not reply.has_failed:
            self._replies[key] = _Recorded(reply, until)  # now the youngest
        while len(self._replies) > limit:
            oldest = next((one for one, kept in self._replies.items() if kept.until is not None), None)
            if oldest is None:
                return
            del self._replies[oldest]

    def forget_reply(self, request: ModelRequest, terms: Terms, reply: Reply) -> None:
        """Nobody can join it any more."""
        key = _key(request, terms)
        if (found := self._replies.get(key)) is not None and found.reply is reply:
            del self._replies[key]

    def drop_recorded(self, now: float) -> None:
        self._replies = {key: kept for key, kept in self._replies.items() if kept.until is None or now < kept.until}

    def abandoned(self, since: float) -> list[Thread]:
        """Those that nobody has touched since then."""
        return [thread for thread in self.threads.values() if not thread.is_busy and thread.touched_at <= since]

    def due_at(self, abandoned_seconds: float) -> list[float]:
        """When something of this room is over."""
        recorded = [kept.until for kept in self._replies.values() if kept.until is not None]
        return recorded + [one.touched_at + abandoned_seconds for one in self.threads.values() if not one.is_busy]


def _key(request: ModelRequest, terms: Terms) -> tuple[str, Terms]:
    return request.fingerprint, replace(terms, wants_new=False)
