"""Copilot's ACP mode: ACP, and beside it the events that tell what its updates leave out. Pure."""

from __future__ import annotations

from connectors._json import JsonObject, object_in, objects_in, plain_text_in
from connectors._jsonrpc import Notified
from connectors.acp.agent import SERVER_NAME, Agent
from connectors.acp.handshake import Opening
from connectors.acp.names import ToolNames
from connectors.acp.protocol import AcpProtocol
from connectors.copilot.events import error_of, retry_notice, usage_of
from harness.contract.options import ConversationOptions
from harness.contract.usage import UsageInfo
from harness.turn.events import TurnEvent, UsageReported, notice

_EVENT = "github.com/copilot/sessionEvent"


class CopilotAcpProtocol(AcpProtocol):
    """One process with one session."""

    def __init__(self, agent: Agent, options: ConversationOptions, names: ToolNames, opening: Opening) -> None:
        super().__init__(agent, options, names, opening)
        self._usage: UsageInfo | None = None
        self._of_turn: object = None

    def vendor(self, notified: Notified) -> list[TurnEvent]:
        turn = self.running()
        if notified.method != _EVENT or turn is None:
            return []
        if self._of_turn is not turn:
            self._of_turn, self._usage = turn, None
        data = object_in(notified.params.get("data"))
        match plain_text_in(notified.params.get("type")):
            case "session.error":
                # what comes now as a chunk is the error's text, not the model's
                turn.ignore_text = True
                self.fail(error_of(data))
                return []
            case "assistant.turn_retry":
                return [*turn.discard("retry"), retry_notice(data)]
            case "session.info":
                turn.ignore_next(f"Info: {plain_text_in(data.get('message'))}")
                return []
            case "assistant.usage":
                self._usage = usage_of(data, self._usage)
                return [] if self._usage is None else [UsageReported(self._usage)]
            case "session.compaction_complete":
                return [notice("compacted", "Copilot has compacted the conversation")]
            case "assistant.message":
                for call in objects_in(data.get("toolRequests")):
                    turn.calls.named(plain_text_in(call.get("toolCallId")), plain_text_in(call.get("name")))
                return []
            case "tool.execution_start":
                self._started(data)
                return []
            case _:
                return []

    def _started(self, data: JsonObject) -> None:
        """The call as Copilot runs it: server, tool and arguments told apart, before the bridge is asked."""
        if data.get("mcpServerName") == SERVER_NAME:
            self.correlation.see(
                plain_text_in(data.get("toolCallId")),
                tool_name=plain_text_in(data.get("mcpToolName")),
                arguments=object_in(data.get("arguments")),
                is_written=True,
            )
