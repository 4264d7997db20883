"""Our own headers, which every provider's wire has beside its own."""

from __future__ import annotations

import re

from starlette.datastructures import Headers

from harness.errors import HarnessError
from harness.surfaces.compatible.exchange import Terms
from harness.surfaces.compatible.refusals import refused
from harness.surfaces.compatible.reply import Reply

CONVERSATION = "X-Harness-Conversation"
IGNORED = "X-Harness-Ignored"
REQUESTS = "X-Harness-Requests"
_UNSAFE = re.compile(r"[^\w.-]", re.ASCII)
"""The names are the client's, and a header must not hold whatever JSON can."""
_MAX_CHARS = 2000


def terms_of(headers: Headers) -> Terms:
    """What the client says about the conversation, beside its wire.

    Raises:
        InvalidArgument: a header with a value that means nothing.
    """
    requests = headers.get(REQUESTS, "policy").strip().lower()
    if requests not in ("policy", "tools"):
        raise refused(f"header '{REQUESTS}' must be 'policy' or 'tools', not '{requests[:40]}'", param=REQUESTS)
    return Terms(
        conversation_id=headers.get(CONVERSATION) or None,
        requests_as_calls=requests == "tools",
        wants_new="no-cache" in headers.get("cache-control", "").lower(),
    )


def reply_headers(reply: Reply) -> dict[str, str]:
    """For every response of a reply that has begun; one that was made without an agent has no conversation."""
    headers = {CONVERSATION: reply.conversation_id} if reply.conversation_id else {}
    if reply.ignored:
        headers[IGNORED] = ", ".join(_UNSAFE.sub("?", name) for name in reply.ignored)[:_MAX_CHARS]
    return headers


def failure_headers(error: HarnessError) -> dict[str, str]:
    """For a request that was refused: the conversation that it was about, where one was found."""
    conversation_id = error.detail.get("conversation_id")
    if isinstance(conversation_id, str) and _UNSAFE.search(conversation_id) is None:
        return {CONVERSATION: conversation_id}
    return {}
