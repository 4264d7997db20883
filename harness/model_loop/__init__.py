"""The agent loop for peers that are bare models, written once over the small port `ChatModel`."""

from harness.model_loop.asking import TURN_OPTIONS
from harness.model_loop.chat_model import (
    AssistantMessage,
    CallMade,
    ChatModel,
    Heard,
    HistoryEntry,
    MalformedAnswer,
    ModelAnswer,
    ModelRequest,
    Said,
    ToolMessage,
    ToolOutcome,
    UserMessage,
    text_said,
)
from harness.model_loop.config import LoopConfig, config_of
from harness.model_loop.history import check_seeded
from harness.model_loop.session import ModelSession

__all__ = [
    "TURN_OPTIONS",
    "AssistantMessage",
    "CallMade",
    "ChatModel",
    "Heard",
    "HistoryEntry",
    "LoopConfig",
    "MalformedAnswer",
    "ModelAnswer",
    "ModelRequest",
    "ModelSession",
    "Said",
    "ToolMessage",
    "ToolOutcome",
    "UserMessage",
    "check_seeded",
    "config_of",
    "text_said",
]
