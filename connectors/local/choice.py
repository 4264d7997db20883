"""Which tools a request may be about, judged by words alone (pure).

A model of 135 million parameters cannot decide whether to call a tool: asked, it always calls or never. Tools that
share words with the request are offered to it, and when none does it answers in words. Larger models decide alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from connectors._json import object_in
from harness.contract.tools import ToolDescriptor

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_FILLING = """
a about all an and any are as at be by can do does for from get give has have how i in is it its me my of on or our
please show some tell that the their this to use want was what when where which who will with you your
"""
_IDLE = frozenset(_FILLING.split())
_ENDINGS = ("ations", "ation", "ings", "ing", "ions", "ion", "ers", "er", "ies", "ed", "es", "s", "e", "y")


def likely_tools(request: str, tools: Sequence[ToolDescriptor]) -> list[str]:
    """The names of the tools that share the most words with the request; none when none shares any."""
    asked = _stems(request)
    scores = {tool.name: len(asked & _stems(_text(tool))) for tool in tools}
    best = max(scores.values(), default=0)
    return [name for name, score in scores.items() if best and score == best]


def _text(tool: ToolDescriptor) -> str:
    properties = object_in(object_in(json.loads(tool.input_schema_json)).get("properties"))
    return " ".join((tool.name, tool.description, *properties))


def _stems(text: str) -> set[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return {_stem(word) for word in words if word not in _IDLE and len(word) > 1}


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word
