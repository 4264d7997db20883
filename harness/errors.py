"""The exception tree: every class has one stable code, the same in Python, on every wire and in the CLI.

    HarnessError
    ├── what the caller did wrong
    │   ├── InvalidArgument                     invalid_argument         400
    │   ├── Unauthorized                        unauthorized             401
    │   ├── Forbidden                           forbidden                403
    │   ├── UnknownId
    │   │   ├── UnknownConversation             unknown_conversation     404
    │   │   ├── UnknownTurn                     unknown_turn             404
    │   │   └── UnknownRequest                  unknown_request          404
    │   ├── TurnInProgress                      turn_in_progress         409
    │   ├── AlreadyAnswered                     already_answered         409
    │   ├── ConversationInUse                   conversation_in_use      409
    │   ├── ContentNotSupported                 content_not_supported    422
    │   ├── LimitExceeded                       limit_exceeded           429
    │   ├── NotSupported                        not_supported            501
    │   └── ConfigError                         config_error             -
    ├── what is missing on this machine
    │   └── ConnectorUnavailable                connector_unavailable    503
    ├── what the peer or provider did wrong
    │   ├── PeerProtocolError                   peer_protocol_error      502
    │   ├── PeerLost                            peer_lost                502
    │   └── ProviderError                       provider_error           502
    ├── what ended a turn
    │   ├── TurnTimeout                         turn_timeout
    │   ├── TurnStalled                         turn_stalled
    │   ├── ContextOverflow                     context_overflow
    │   ├── LoopGuard                           loop_guard
    │   └── TurnTooLarge                        turn_too_large
    └── Internal                                internal                 500

A tool's failure is data, a turn's failure is a state, a broken call is an exception (contract 7).
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, cast


class HarnessError(Exception):
    """What went wrong, for a person (`message`) and for a program (`code`, `detail`).

    `retryable` says whether the same call may succeed later without a change by the caller.
    """

    code: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **detail: object) -> None:
        super().__init__(message)
        self.message = message
        self.detail: dict[str, object] = {name: value for name, value in detail.items() if value is not None}

    @property
    def detail_json(self) -> str | None:
        """The detail as JSON text, null when there is none."""
        return json.dumps(self.detail, separators=(",", ":"), default=str) if self.detail else None


class InvalidArgument(HarnessError):
    code = "invalid_argument"
    http_status = 400


class Unauthorized(HarnessError):
    code = "unauthorized"
    http_status = 401


class Forbidden(HarnessError):
    code = "forbidden"
    http_status = 403


class UnknownId(HarnessError):
    """An id that names nothing the caller owns."""

    http_status = 404


class UnknownConversation(UnknownId):
    code = "unknown_conversation"


class UnknownTurn(UnknownId):
    code = "unknown_turn"


class UnknownRequest(UnknownId):
    code = "unknown_request"


class TurnInProgress(HarnessError):
    code = "turn_in_progress"
    http_status = 409


class AlreadyAnswered(HarnessError):
    code = "already_answered"
    http_status = 409


class ConversationInUse(HarnessError):
    """Another live process holds the conversation; `detail.holder` names it."""

    code = "conversation_in_use"
    http_status = 409
    retryable = True


class ContentNotSupported(HarnessError):
    """The connector cannot carry this content; nothing was sent."""

    code = "content_not_supported"
    http_status = 422


class LimitExceeded(HarnessError):
    """A server limit; `detail.retry_after_ms` says when to come back."""

    code = "limit_exceeded"
    http_status = 429
    retryable = True


class NotSupported(HarnessError):
    """The connector's capabilities exclude what was asked."""

    code = "not_supported"
    http_status = 501


class ConfigError(HarnessError):
    """A file or setting that cannot be used: `detail` has file, key and expected where known."""

    code = "config_error"
    http_status = 400


class ConnectorUnavailable(HarnessError):
    """The peer cannot be used here; the message says what to type.

    `detail.reason`: not_installed, not_logged_in, wrong_version or tools_unavailable.
    """

    code = "connector_unavailable"
    http_status = 503

    def __init__(self, message: str, *, reason: str = "not_installed", **detail: object) -> None:
        super().__init__(message, reason=reason, **detail)


class PeerProtocolError(HarnessError):
    """The peer broke its protocol; `line` is the raw line as far as it is known."""

    code = "peer_protocol_error"
    http_status = 502

    def __init__(self, message: str, *, line: bytes | str | None = None, **detail: object) -> None:
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        super().__init__(message, line=text[:2000] if text else None, **detail)


class PeerLost(HarnessError):
    """The peer is gone: `exit_code` (negative: the signal) and the last lines of its stderr."""

    code = "peer_lost"
    http_status = 502
    retryable = True

    def __init__(
        self, message: str, *, exit_code: int | None = None, stderr_tail: str | None = None, **detail: object
    ) -> None:
        super().__init__(message, exit_code=exit_code, stderr_tail=stderr_tail or None, **detail)
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail or ""


class ProviderError(HarnessError):
    """The model's provider refused or failed.

    `reason`: rate_limit, auth, billing, overloaded, network, server or request.
    """

    code = "provider_error"
    http_status = 502

    def __init__(
        self,
        message: str,
        *,
        reason: str = "server",
        status: int | None = None,
        provider_code: str | None = None,
        retry_after_ms: int | None = None,
        **detail: object,
    ) -> None:
        super().__init__(
            message,
            reason=reason,
            status=status,
            provider_code=provider_code,
            retry_after_ms=retry_after_ms,
            **detail,
        )


class TurnTimeout(HarnessError):
    """The absolute limit of the turn (`turn_ms`) passed."""

    code = "turn_timeout"
    http_status = 504


class TurnStalled(HarnessError):
    """The peer was silent for `idle_ms` while nothing waited for the host."""

    code = "turn_stalled"
    http_status = 504
    retryable = True


class ContextOverflow(HarnessError):
    code = "context_overflow"
    http_status = 502


class LoopGuard(HarnessError):
    """The model repeated itself without progress."""

    code = "loop_guard"
    http_status = 502


class TurnTooLarge(HarnessError):
    """The turn produced more than the server's `max_turn_bytes`."""

    code = "turn_too_large"
    http_status = 502


class Internal(HarnessError):
    """A fault of ours; the log has the traceback."""


def _all_classes(root: type[HarnessError]) -> Iterator[type[HarnessError]]:
    for child in root.__subclasses__():
        yield child
        yield from _all_classes(child)


def from_code(code: str, message: str, detail: Mapping[str, object] | None = None) -> HarnessError:
    """The exception that a wire's error stands for; an unknown code becomes `Internal`, its code kept in the detail."""
    known = {cls.code: cls for cls in (Internal, *_all_classes(HarnessError)) if "code" in vars(cls)}
    cls = known.get(code, Internal)
    error = cls(message)
    error.detail.update(detail or {})
    if cls is Internal and code != "internal":
        error.detail["code"] = code
    return error


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(cast("BaseExceptionGroup[BaseException]", error))
        else:
            yield error


@contextmanager
def unwrapped() -> Generator[None]:
    """Lets our own error out of a task group's `ExceptionGroup`, and anything else as it is.

    A group that holds one of our errors beside consequences (a cancelled reader, a broken pipe) is about our error.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        leaves = list(_leaves(group))
        ours = [error for error in leaves if isinstance(error, HarnessError)]
        others = [error for error in leaves if not isinstance(error, HarnessError)]
        if ours and all(isinstance(error, Exception) for error in others):
            raise ours[0] from group
        if len(leaves) == 1:
            raise leaves[0] from group
        raise
