"""What of a turn may be seen: everything, or with a journal what is durable; effects wait for it as polls do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import anyio

from harness.conversation.journal import Journal
from harness.store.port import Entry, ItemsProduced, OutputStructured
from harness.turn.effects import Deliver, Effect
from harness.turn.turn import Turn


class Publication:
    """Shows the items of one turn in order and releases each effect once the items up to it are shown."""

    def __init__(
        self,
        turn_id: str,
        turn: Turn,
        journal: Journal | None,
        *,
        release: Callable[[Effect], None],
        shown: Callable[[], None],
    ) -> None:
        self._turn_id = turn_id
        self._turn = turn
        self._journal = journal
        self._release = release
        self._shown = shown
        """Told after more became visible, before those who wait for it."""
        self.visible = self._noted = turn.head
        """The number up to which polls may look."""
        self._held: list[tuple[int, Effect]] = []
        """Effects that wait until the item of that number is visible."""
        self._changed: anyio.Event | None = None
        self._is_closed = False

    @property
    def is_over(self) -> bool:
        """Whether the end of the turn can be seen."""
        return self._turn.is_over and self.visible >= self._turn.head

    async def wait_newer(self, since: int, max_wait_ms: int) -> None:
        """Returns when an item after `since` is visible or the turn is over, or after `max_wait_ms`."""
        with anyio.move_on_after(max_wait_ms / 1000):
            while self.visible <= since and not self.is_over and not self._is_closed:
                self._changed = self._changed or anyio.Event()
                await self._changed.wait()

    def publish(self) -> None:
        """After every change: what is durable is shown, and the effects up to it are released."""
        head = self._turn.head
        effects = self._turn.take_effects()
        self._held.extend((head, effect) for effect in effects)
        if self._journal is None or (self.visible == head and not effects):
            self._show(head)
        elif self._noted < head or effects:
            self._journal.note(*self._new_entries(), then=partial(self._show, head))

    def hold_back_from(self, withdrawn: Iterable[str]) -> None:
        """An accepted answer that waits for its commit while its request is withdrawn reaches nobody."""
        if not self._held:
            return
        gone = set(withdrawn)
        self._held = [
            (number, effect)
            for number, effect in self._held
            if not (isinstance(effect, Deliver) and effect.request.peer_request_id in gone)
        ]

    def close(self) -> None:
        """Nothing more is shown or released: as if this process were killed now."""
        self._is_closed = True
        self._held.clear()
        self._wake()

    def _new_entries(self) -> list[Entry]:
        items = self._turn.items_after(self._noted)
        self._noted = self._turn.head
        entries: list[Entry] = [ItemsProduced(self._turn_id, items)] if items else []
        if self._turn.is_over and self._turn.structured_output_json is not None and items:
            entries.append(OutputStructured(self._turn_id, self._turn.structured_output_json))
        return entries

    def _show(self, upto: int) -> None:
        if self._is_closed:
            return
        self.visible = max(self.visible, upto)
        while self._held and self._held[0][0] <= self.visible:
            self._release(self._held.pop(0)[1])
        self._shown()
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()
