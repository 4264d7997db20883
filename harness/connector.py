"""The port that every connector implements (design 4). A connector sees this and never a poller or a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from harness.contract.capabilities import LlmCapabilities
from harness.contract.content import ContentBlock
from harness.contract.delegation import Delegation
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.requests import HostRequest, HostResponse
from harness.contract.value import JsonValue
from harness.turn.events import OutputProduced, TurnEvent


class SessionGone(Exception):
    """The peer was found dead before the message was sent: the same turn may run in a new session."""


@dataclass(frozen=True, slots=True)
class AcceptedAnswer:
    """An answer of the host that is on record; `delivered` is true once it surely reached the peer."""

    request: HostRequest
    response: HostResponse
    delivered: bool


class TurnSink(Protocol):
    """Where a session puts what it sees of one turn. After the turn's end it swallows everything."""

    def emit(self, *events: TurnEvent) -> None:
        """The events of one read: sync, ordered, never blocks."""
        ...

    def ask(self, request: HostRequest) -> AbstractAsyncContextManager[HostResponse]:
        """Raises the request and waits for the host's answer.

        Leaving normally means delivered, leaving before the answer means withdrawn; such a request never reaches
        `Session.deliver`. On cancel it stays parked until `Session.interrupt` has returned, then gives the synthetic
        error.
        """
        ...


class Session(Protocol):
    """The peer's side of one conversation."""

    async def run_turn(self, content: Sequence[ContentBlock], options: TurnOptions, sink: TurnSink) -> None:
        """Sends the message and feeds the sink; returns when the peer's turn ended.

        Raises:
            SessionGone: the peer was dead before the message was sent.
            HarnessError: becomes the turn's failure; `PeerLost` also ends the session.
        """
        ...

    async def resume_turn(self, options: TurnOptions, sink: TurnSink) -> None:
        """Capability `resume: exact` only: goes on with a restored turn."""
        ...

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        """Hands the answer to the peer's outbox; written at once if the pipe takes it. Never waits."""
        ...

    async def interrupt(self) -> None:
        """Asks the peer to stop; returns when it has stopped or an escalation ended it.

        What the peer still holds open is closed with the synthetic error before this returns.
        """
        ...


class SessionLog(Protocol):
    """Private durable memory of one conversation, never shown to callers."""

    def append(self, record: JsonValue) -> None:
        """Durable before anything emitted later becomes visible: inner session id, model history, usage baseline."""
        ...

    def records(self) -> Sequence[JsonValue]:
        """What an earlier session left; empty means fresh."""
        ...

    def answers(self) -> Sequence[AcceptedAnswer]:
        """Accepted answers of a restored turn."""
        ...

    def notice(self, event: OutputProduced) -> None:
        """Something to tell that happened outside a turn: shown with the next one."""
        ...


class Connector(Protocol):
    """One kind of peer. Made by the registry without arguments; holds no conversation of its own."""

    @property
    def name(self) -> str: ...

    @property
    def variants(self) -> Mapping[str, Mapping[str, JsonValue]]:
        """Names after the colon (`claude:bridge`) and the connector options that each stands for."""
        ...

    @property
    def restricted_options(self) -> frozenset[str]:
        """Connector options that name commands, files, environment or targets: not for remote callers (design 10)."""
        ...

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        """True for the route, mode and version these options select.

        Raises:
            ConnectorUnavailable: it cannot be used here; the message says what to type.
            InvalidArgument: connector options it does not understand.
        """
        ...

    def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AbstractAsyncContextManager[Session]:
        """The peer, ready for messages; leaving frees its process and all it owned."""
        ...


@runtime_checkable
class DryRun(Protocol):
    """A connector that can say what it would start."""

    def dry_run(self, options: ConversationOptions) -> Mapping[str, JsonValue]:
        """For people and scripts: `argv` and the names of the environment. Starts nothing, shows no secret."""
        ...


@runtime_checkable
class Reaps(Protocol):
    """A connector whose peers are processes that may outlive a crash of ours."""

    async def reap(self, records: Sequence[JsonValue]) -> None:
        """Ends what the processes recorded in a dead conversation's `SessionLog` left; by mark and start time."""
        ...


@runtime_checkable
class Weighs(Protocol):
    """A connector that can say what its peers take of this machine."""

    def resident_bytes(self, records: Sequence[JsonValue]) -> int:
        """The memory of the living processes recorded in a conversation's `SessionLog`; 0 when none lives."""
        ...


@runtime_checkable
class Forks(Protocol):
    """A connector whose conversations can go on twice from one point (capability `fork`)."""

    def forked(self, records: Sequence[JsonValue]) -> Sequence[JsonValue]:
        """What the new conversation's `SessionLog` begins with, made from that of the other as of now."""
        ...


@runtime_checkable
class ChecksDelegation(Protocol):
    """A connector whose peer takes a part of what may be delegated."""

    def check_delegation(self, options: ConversationOptions, delegation: Delegation) -> None:
        """Called when something is delegated, before the first turn.

        Raises:
            NotSupported: names what the peer cannot use, or cannot keep to the letter.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that a connector can talk to, as far as its provider tells."""

    name: str
    size_bytes: int | None = None
    context_window: int | None = None
    capabilities: tuple[str, ...] = ()
    about: str = ""


class PullProgress(Protocol):
    def __call__(self, status: str, completed: int | None, total: int | None) -> None:
        """What is being done, and how many bytes of how many are there."""
        ...


@runtime_checkable
class ModelCatalog(Protocol):
    """A connector that can say which models there are."""

    async def list_models(self, options: ConversationOptions) -> Sequence[ModelInfo]:
        """Raises:
        ConnectorUnavailable: it cannot be asked here; the message says what to type.
        """
        ...


@runtime_checkable
class ModelSource(Protocol):
    """A connector that can bring a model onto the machine of its provider."""

    async def pull_model(self, options: ConversationOptions, name: str, progress: PullProgress) -> None: ...


@dataclass(frozen=True, slots=True)
class Login:
    """Whether a peer has credentials: null where that cannot be told without asking its provider."""

    is_there: bool | None
    told: str
    """Which kind, in words; never the credential."""
    remedy: str | None = None
    """What to type where it is missing."""


@runtime_checkable
class TellsLogin(Protocol):
    """A connector that can look up whether somebody is logged in, without any traffic."""

    async def login(self, options: ConversationOptions) -> Login: ...
