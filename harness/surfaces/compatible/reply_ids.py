"""What the id of a reply says (pure): where it begins, so that it can be continued when nobody remembers the reply."""

from __future__ import annotations

from dataclasses import dataclass

from harness.contract.output import RequestOpened
from harness.contract.state import ConversationExport


@dataclass(frozen=True, slots=True)
class ReplyId:
    """`c_4f0a-t2-17`: a reply to the second turn, whose items it reads from the one after number 17."""

    conversation_id: str
    turn_id: str
    since: int

    def __str__(self) -> str:
        return f"{self.conversation_id}-{self.turn_id}-{self.since}"

    @staticmethod
    def read(text: str) -> ReplyId | None:
        conversation_id, turn_id, since = ("", "", *text.rsplit("-", 2))[-3:]
        if not (conversation_id and turn_id and since.isascii() and since.isdigit() and len(since) < 10):
            return None
        return ReplyId(conversation_id, turn_id, int(since))

    def is_last_of(self, export: ConversationExport) -> bool:
        """Whether nothing was said after it.

        A request that was opened since and is closed again may have ended it, so that there was another reply.
        """
        if not export.turns or export.turns[-1].turn_id != self.turn_id:
            return False
        opened = sum(
            item.sequence_no > self.since for item in export.turns[-1].items if isinstance(item, RequestOpened)
        )
        return opened <= export.conversation.pending_requests
