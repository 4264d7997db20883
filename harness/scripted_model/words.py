"""What a peer puts around a tool's result before its model reads it, taken off again (pure)."""

from __future__ import annotations

import re
from dataclasses import replace

from harness.scripted_model.dialect import ModelRequest, PastCall


def without_words(request: ModelRequest, words: re.Pattern[str]) -> ModelRequest:
    """The request with the bare results; `words` matches a whole result that has them, its first group is the rest."""
    return replace(request, past_calls=tuple(_bare(call, words) for call in request.past_calls))


def _bare(call: PastCall, words: re.Pattern[str]) -> PastCall:
    found = None if call.result is None else words.fullmatch(call.result)
    return call if found is None else replace(call, result=found[1], had_words=True)
