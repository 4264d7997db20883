"""The nine operations that everybody implements, and the directory beside them (contract 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from harness.contract.capabilities import LlmCapabilities
from harness.contract.content import ContentBlock
from harness.contract.delegation import RequestPolicy
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.requests import HostResponse, OpenRequest
from harness.contract.state import ConversationExport, ConversationInfo, TurnState
from harness.contract.tools import ToolSourceDescriptor


class ConversationalLLM(Protocol):
    """Any inner agent or model as an LLM that calls the caller's tools."""

    async def get_capabilities(self, options: ConversationOptions | None = None) -> LlmCapabilities:
        """True for the connector, route, mode and version that these options select."""
        ...

    async def begin_conversation(self, options: ConversationOptions) -> str:
        """The conversation id; the same `client_key` of the same owner gives the same conversation while it exists."""
        ...

    async def submit_user_message(
        self, conversation_id: str, content: Sequence[ContentBlock], options: TurnOptions | None = None
    ) -> str:
        """The turn id. One turn at a time: `TurnInProgress`, unless it is a repetition of the running one."""
        ...

    async def poll_turn(
        self,
        conversation_id: str,
        turn_id: str,
        since_sequence_no: int = 0,
        max_wait_ms: int = 0,
        max_items: int = 1000,
    ) -> TurnState:
        """What is newer than `since_sequence_no`; waits up to `max_wait_ms` while nothing is and the turn goes on."""
        ...

    async def submit_responses(self, conversation_id: str, turn_id: str, responses: Sequence[HostResponse]) -> None:
        """Each answer is judged alone; one error lists the rejected ones in `detail.rejected` (contract 4)."""
        ...

    async def cancel_turn(self, conversation_id: str, turn_id: str) -> None:
        """Idempotent; resolves every open request as cancelled and interrupts the peer once (contract 5)."""
        ...

    async def end_conversation(self, conversation_id: str) -> None:
        """Idempotent; frees the process and all it owned."""
        ...

    async def delegate_tool_sources(self, conversation_id: str, sources: Sequence[ToolSourceDescriptor]) -> None:
        """Before the first turn only; `NotSupported` when the capability does not list the kind."""
        ...

    async def delegate_request_policy(self, conversation_id: str, policy: RequestPolicy) -> None:
        """Before the first turn only; what the rules do not cover still arrives as a request."""
        ...


class ConversationDirectory(Protocol):
    """All conversations of one owner."""

    async def list_conversations(self) -> list[ConversationInfo]: ...

    async def get_conversation(self, conversation_id: str) -> ConversationInfo: ...

    async def list_requests(self) -> list[OpenRequest]:
        """All that waits, over all conversations."""
        ...

    async def fork_conversation(self, conversation_id: str) -> str:
        """A new conversation that starts where this one stands; `NotSupported` without the capability."""
        ...

    async def delete_conversation(self, conversation_id: str) -> None:
        """Ends and forgets it."""
        ...

    async def export_conversation(self, conversation_id: str) -> ConversationExport: ...
