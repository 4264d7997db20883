"""Which conversations a journal may forget (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from harness.store.port import ConversationRecord


def to_forget(
    records: Sequence[ConversationRecord],
    sizes: Mapping[str, int],
    *,
    now: int,
    held: Collection[str] = (),
    ttl_ms: int | None = None,
    max_chars: int | None = None,
) -> list[ConversationRecord]:
    """Those not used for longer than `ttl_ms`, then the longest unused until the rest fits into `max_chars`.

    What a live process holds, and a turn that waits to be gone on with, is never among them, and counts for the size.
    """
    free = [one for one in records if one.conversation_id not in held and not one.summary.turn_is_running]
    by_use = sorted(free, key=lambda record: record.summary.updated_at)
    old = [one for one in by_use if ttl_ms is not None and now - one.summary.updated_at > ttl_ms]
    if max_chars is None:
        return old
    gone = {one.conversation_id for one in old}
    total = sum(sizes.get(one.conversation_id, 0) for one in records if one.conversation_id not in gone)
    for record in by_use:
        if total <= max_chars:
            break
        if record.conversation_id not in gone:
            total -= sizes.get(record.conversation_id, 0)
            old.append(record)
    return old
