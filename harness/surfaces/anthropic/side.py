"""What Claude Code asks beside its conversation, and needs no agent for (pure).

A probe asks for one token, to see whether a model answers at all. A title request shows the session's first words and
wants an object with a `title`. Both are answered here at once, because an agent that is started for them costs more
than they are worth. `count_tokens` is an estimate: what an agent adds to the text is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from harness.contract.content import text_of
from harness.contract.usage import UsageInfo
from harness.contract.value import JsonValue
from harness.surfaces.anthropic.body import MessagesBody
from harness.surfaces.compatible.exchange import ModelRequest, ReplyEnd, ReplyEnded, ReplyPart, TextPart

_CHARS_PER_TOKEN = 4
_TOKENS_PER_IMAGE = 1_600
_TITLE_CHARS = 60
_NO_USAGE = UsageInfo(input_tokens=0, output_tokens=1)


def is_claude_code(headers: Mapping[str, str]) -> bool:
    """Only it is known to ask such things; from others even a single token is meant."""
    return headers.get("user-agent", "").startswith("claude-cli/")


def side_reply(request: ModelRequest) -> tuple[ReplyPart, ...] | None:
    """The whole reply to a probe or a title request; null for everything else."""
    if request.tools or len(request.messages) != 1:
        return None
    said = text_of(request.messages[0].content)
    if request.options.max_output_tokens == 1:
        return TextPart("ok"), ReplyEnded(ReplyEnd.MAX_TOKENS, _NO_USAGE)
    if _wants_only_a_title(request.options.output_schema_json) and (session := _session(said)) is not None:
        text = json.dumps({"title": _title(session)}, ensure_ascii=False)
        return TextPart(text), ReplyEnded(ReplyEnd.END_TURN, _NO_USAGE)
    return None


def count_tokens(body: MessagesBody) -> int:
    """An estimate by the length of what is said, called and offered."""
    said = _tokens(body.system) + sum(_tokens(message.content) for message in body.messages)
    return max(1, round(said + sum(_tokens(tool.model_dump()) for tool in body.tools)))


def _tokens(value: JsonValue) -> float:
    """Of every text in a JSON value; an image counts by itself, however long its data."""
    match value:
        case str():
            return len(value) / _CHARS_PER_TOKEN
        case {"type": "image"}:
            return _TOKENS_PER_IMAGE
        case dict():
            members = cast(dict[str, JsonValue], value)
            return sum(_tokens(name) + _tokens(member) for name, member in members.items())
        case list():
            return sum(_tokens(one) for one in cast(list[JsonValue], value))
        case _:
            return 0


def _wants_only_a_title(schema_json: str | None) -> bool:
    match json.loads(schema_json or "null"):
        case {"properties": {"title": _, **others}}:
            return not others
        case _:
            return False


def _session(said: str) -> str | None:
    """What stands between the marks; found in one pass, whatever a client sends."""
    _, begun, rest = said.partition("<session>")
    session, ended, _ = rest.partition("</session>")
    return session if begun and ended else None


def _title(session: str) -> str:
    """The first words of the session, on one line."""
    words = " ".join(session.split())
    if len(words) <= _TITLE_CHARS:
        return words
    return words[:_TITLE_CHARS].rpartition(" ")[0] or words[:_TITLE_CHARS]
