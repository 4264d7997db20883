"""Bodies of the native wire that are more than one value of the contract."""

from __future__ import annotations

from harness.contract.content import ContentBlock
from harness.contract.options import TurnOptions
from harness.contract.requests import HostResponse, OpenRequest
from harness.contract.state import ConversationInfo
from harness.contract.tools import ToolSourceDescriptor
from harness.contract.value import Value


class Health(Value):
    status: str = "ok"


class ConversationCreated(Value):
    conversation_id: str


class ConversationList(Value):
    conversations: list[ConversationInfo]


class UserMessage(Value):
    """What begins a turn."""

    content: list[ContentBlock]
    options: TurnOptions | None = None


class TurnCreated(Value):
    turn_id: str


class Responses(Value):
    """Answers, each judged alone; the error lists those that were rejected."""

    responses: list[HostResponse]


class ToolSources(Value):
    tool_sources: list[ToolSourceDescriptor]


class RequestList(Value):
    requests: list[OpenRequest]


class ConnectorInfo(Value):
    """A connector of this server, as `ConversationOptions.connector` names it."""

    name: str
    is_default: bool = False


class ConnectorList(Value):
    connectors: list[ConnectorInfo]
