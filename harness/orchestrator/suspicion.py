"""What in a tool's result looks as if it wanted to give the model orders (pure).

A mark is for people who read the trace; the result itself is passed on unchanged, as data. No list of patterns finds
everything, so nothing is decided by it.
"""

from __future__ import annotations

import re

LOOKED_AT = 200_000
"""Characters of a result's beginning, and as many of its end."""

_FLAGS = re.IGNORECASE | re.MULTILINE
_LOOKS_LIKE: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "replaces_instructions",
        re.compile(
            r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,60}\b(?:instructions?|prompts?|rules|guidelines)\b",
            _FLAGS,
        ),
    ),
    (
        "speaks_as_the_system",
        re.compile(
            r"</?\s*(?:system|system-reminder|developer|assistant|instructions?)\s*>|<\|im_(?:start|end)\|>|\[/?INST\]"
            r"|^[ \t]*#{0,3}[ \t]*(?:system|developer)(?: prompt| message)?[ \t]*:",
            _FLAGS,
        ),
    ),
    (
        "gives_a_new_task",
        re.compile(
            r"\b(?:you are now|from now on,? you|your (?:new|real) (?:task|role|goal))\b|\bnew instructions?[ \t]*:",
            _FLAGS,
        ),
    ),
    (
        "wants_secrets_sent",
        re.compile(
            r"\b(?:send|post|upload|forward|exfiltrate|paste|include)\b[^.\n]{0,80}"
            r"\b(?:api[ _-]?keys?|tokens?|passwords?|secrets?|credentials?|private keys?|environment variables?)\b",
            _FLAGS,
        ),
    ),
    (
        "wants_to_be_hidden",
        re.compile(
            r"\b(?:do not|don't|never) (?:tell|inform|mention|show|reveal)\b[^.\n]{0,40}\b(?:user|human)\b", _FLAGS
        ),
    ),
    ("invisible_text", re.compile("[\U000e0000-\U000e007f\u202a-\u202e\u2066-\u2069]|[\u200b\u2060\ufeff]{2,}")),
)


def marks_of(text: str) -> list[str]:
    """The names of what it looks like, in a fixed order; empty for an ordinary result."""
    looked_at = text if len(text) <= 2 * LOOKED_AT else f"{text[:LOOKED_AT]}\n{text[-LOOKED_AT:]}"
    return [name for name, pattern in _LOOKS_LIKE if pattern.search(looked_at)]
