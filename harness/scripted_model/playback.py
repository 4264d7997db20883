"""Makes the next entry of a script ready for a request: which entry, which ids, which names, which results.

Pure: the run's token, which makes ids unique, comes from outside.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.scripted_model.dialect import Dialect, ModelAnswer, ModelCall, ModelRequest
from harness.scripted_model.script import Script, ScriptedCall, ScriptEntry

_SHORTEST_STEM = 24
_QUOTE = re.compile(r"\{\{\s*results\.(.+?)\s*\}\}")


class ScriptMismatch(Exception):
    """The script and the request do not fit. Takes no entry: a peer's retry meets the same error."""


@dataclass(frozen=True)
class Played:
    """An entry taken from the script; `number` counts from 1."""

    number: int
    entry: ScriptEntry
    answer: ModelAnswer


class Playback:
    """A script being followed, one entry per model call, in the order the calls arrive."""

    def __init__(self, script: Script, *, run: str) -> None:
        self._script = script
        self._run = run
        self._taken = 0
        self._ids = 0

    def next_for(self, request: ModelRequest, dialect: Dialect) -> Played:
        """Take the next entry.

        Raises:
            ScriptMismatch: the script is over, a quoted result is not in the request, or a name fits several tools.
        """
        number = self._taken + 1
        if number > len(self._script):
            entries = "1 entry" if len(self._script) == 1 else f"{len(self._script)} entries"
            raise ScriptMismatch(
                f"the script is over: it has {entries} and this is model call {number}. Add an entry, or see in the "
                "log of requests why the peer calls again."
            )
        entry = self._script[number - 1]
        try:
            answer = ModelAnswer(
                message_id=self._new_id(dialect.message_id_prefix),
                thinking=entry.thinking,
                text=tuple(_with_results(piece, request) for piece in entry.text),
                calls=tuple(self._call(call, request, dialect) for call in entry.calls),
                stop=entry.stop,
                usage=entry.usage,
            )
        except ScriptMismatch as mismatch:
            raise ScriptMismatch(f"entry {number} of the script: {mismatch}") from None
        self._taken = number
        return Played(number, entry, answer)

    def _call(self, call: ScriptedCall, request: ModelRequest, dialect: Dialect) -> ModelCall:
        call_id = call.id if call.id is not None else self._new_id(dialect.call_id_prefix)
        return ModelCall(call_id, peer_name(call.name, request.tools), call.arguments_text)

    def _new_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}{self._run}{self._ids:04d}"


def peer_name(name: str, tools: Sequence[str]) -> str:
    """The peer's name of the caller's tool.

    The same, else the one that ends in `__<name>`, in `_<name>` or `-<name>`, else the one that is the name's beginning
    with a digest, else as it stands.
    """
    if name in tools:
        return name
    found = (
        [tool for tool in tools if tool.endswith(f"__{name}")]
        or [tool for tool in tools if tool.endswith((f"_{name}", f"-{name}"))]
        or [tool for tool in tools if _is_shortened(name, tool)]
    )
    if len(found) > 1:
        raise ScriptMismatch(f"'{name}' fits several tools ({', '.join(found)}): write the full name")
    return found[0] if found else name


def _is_shortened(name: str, tool: str) -> bool:
    """Whether the peer's `<prefix>__<beginning>_<digest>` may stand for a name that was too long for it."""
    stem = tool.rpartition("_")[0]
    beginnings = (stem[found.end() :] for found in re.finditer("^|_+|-", stem))
    return any(len(one) >= _SHORTEST_STEM and name.startswith(one) for one in beginnings)


def _with_results(piece: str, request: ModelRequest) -> str:
    return _QUOTE.sub(lambda quote: _result(quote.group(1), request), piece)


def _result(reference: str, request: ModelRequest) -> str:
    """The result of the call with this id, else of the only call of the tool with this name."""
    # A repeated id, or a result sent twice: the model goes by the last one.
    results = {call.call_id: call.result for call in request.past_calls if call.result is not None}
    if reference in results:
        return results[reference]
    named = {
        call.call_id
        for call in request.past_calls
        if call.call_id in results and (call.name == reference or call.name.endswith(f"__{reference}"))
    }
    if len(named) == 1:
        return results[named.pop()]
    if named:
        raise ScriptMismatch(f"'{reference}' was called {len(named)} times: give the call an 'id' and quote that")
    known = ", ".join(f"'{call_id}'" for call_id in results) or "none"
    raise ScriptMismatch(f"no result of '{reference}' in the request; results there: {known}")
