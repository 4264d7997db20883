"""A Level-2 harness: talk to any agent CLI or model as if it were an LLM that calls your tools.

Names are resolved on first use, so `import harness` loads neither pydantic nor a vendor's SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.connect import connect
    from harness.contract import (
        ContentBlock,
        ConversationalLLM,
        ConversationDirectory,
        ConversationOptions,
        HostRequest,
        HostResponse,
        ImageBlock,
        Limits,
        LlmCapabilities,
        OutputItem,
        TextBlock,
        Timeouts,
        ToolDescriptor,
        TurnOptions,
        TurnState,
        UsageInfo,
    )
    from harness.errors import HarnessError
    from harness.local import LocalHarness
    from harness.orchestrator.agent_tool import AgentTool
    from harness.orchestrator.completion import Completion
    from harness.orchestrator.functions import tools_from
    from harness.orchestrator.marks import tool
    from harness.orchestrator.run import run_to_completion, run_to_completion_sync
    from harness.orchestrator.tool_context import ToolContext
    from harness.orchestrator.tool_registry import ToolRegistry
    from harness.registry import Registry
    from harness.remote import RemoteHarness
    from harness.settings import Rights, Settings

_HOMES = {
    "harness.connect": ("connect",),
    "harness.contract": (
        "ContentBlock",
        "ConversationDirectory",
        "ConversationOptions",
        "ConversationalLLM",
        "HostRequest",
        "HostResponse",
        "ImageBlock",
        "Limits",
        "LlmCapabilities",
        "OutputItem",
        "TextBlock",
        "Timeouts",
        "ToolDescriptor",
        "TurnOptions",
        "TurnState",
        "UsageInfo",
    ),
    "harness.errors": ("HarnessError",),
    "harness.local": ("LocalHarness",),
    "harness.orchestrator.agent_tool": ("AgentTool",),
    "harness.orchestrator.completion": ("Completion",),
    "harness.orchestrator.functions": ("tools_from",),
    "harness.orchestrator.marks": ("tool",),
    "harness.orchestrator.run": ("run_to_completion", "run_to_completion_sync"),
    "harness.orchestrator.tool_context": ("ToolContext",),
    "harness.orchestrator.tool_registry": ("ToolRegistry",),
    "harness.registry": ("Registry",),
    "harness.remote": ("RemoteHarness",),
    "harness.settings": ("Rights", "Settings"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AgentTool",
    "Completion",
    "ContentBlock",
    "ConversationDirectory",
    "ConversationOptions",
    "ConversationalLLM",
    "HarnessError",
    "HostRequest",
    "HostResponse",
    "ImageBlock",
    "Limits",
    "LlmCapabilities",
    "LocalHarness",
    "OutputItem",
    "Registry",
    "RemoteHarness",
    "Rights",
    "Settings",
    "TextBlock",
    "Timeouts",
    "ToolContext",
    "ToolDescriptor",
    "ToolRegistry",
    "TurnOptions",
    "TurnState",
    "UsageInfo",
    "connect",
    "run_to_completion",
    "run_to_completion_sync",
    "tool",
    "tools_from",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'harness' has no attribute '{name}'")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
