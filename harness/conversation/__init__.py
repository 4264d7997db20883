"""One conversation: a session of a connector, its current turn, waiters, deadlines and ids."""

from harness.conversation.conversation import Conversation

__all__ = ["Conversation"]
