"""Makes a prompt fit the context window: finds the smallest further cuts that do (pure).

First the results of old rounds become one line each, then old entries are left out, then long results lose their
middle. The newest rounds and open pairs of call and result are never taken apart.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.model_loop.cuts import Cuts
from harness.model_loop.history import Entry, ModelSaid, UserSaid

PROTECTED_ROUNDS = (2, 1)
"""The newest answers stay; only the last one where two do not fit."""
FILL = 0.85
"""Part of the window a prompt may take before something is cut; the rest is the answer's."""
TARGET = 0.6
"""Part of that which a compacted prompt takes, so that the next one does not have to be compacted again."""
RESULT_STEPS = (64_000, 16_000, 4_000, 1_000)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Our rough token count against the provider's: the last prompt both know."""

    factor: float = 1.0
    is_known: bool = False

    @staticmethod
    def of(entries: Sequence[Entry]) -> Calibration:
        for entry in reversed(entries):
            if isinstance(entry, ModelSaid) and entry.usage and entry.usage.input_tokens and entry.estimate:
                return Calibration(min(4.0, max(0.25, entry.usage.input_tokens / entry.estimate)), True)
        return Calibration()


def limit_of(window: int, max_output_tokens: int | None) -> int:
    """Tokens a prompt may have in this window."""
    kept_for_answer = min(max_output_tokens or 0, window // 2)
    return min(int(window * FILL), window - kept_for_answer)


def further_cuts(
    entries: Sequence[Entry], cuts: Cuts, measure: Callable[[Cuts], int], target: int, turn_starts_at: int
) -> Cuts:
    """The smallest cuts beyond `cuts` with which the prompt has at most `target` tokens, else the largest there are."""
    found = cuts
    for protected in (_protected_from(entries, rounds) for rounds in PROTECTED_ROUNDS):
        for step in (_stubs, _drops):
            if measure(found) <= target:
                return found
            found = _first_that_fits(step(entries, found, protected, turn_starts_at), measure, target) or found
    shorter = [replace(found, result_chars=chars) for chars in RESULT_STEPS if chars < (cuts.result_chars or 10**9)]
    return found if measure(found) <= target else _first_that_fits(shorter, measure, target) or found


def _protected_from(entries: Sequence[Entry], rounds: int) -> int:
    """From here on entries stay: so many of the last answers, and what the user said before and after them."""
    answers = [index for index, entry in enumerate(entries) if isinstance(entry, ModelSaid)]
    start = answers[-rounds] if len(answers) >= rounds else 0
    before = start - 1
    return before if before >= 0 and isinstance(entries[before], UserSaid) else start


def _stubs(entries: Sequence[Entry], cuts: Cuts, protected: int, turn_starts_at: int) -> list[Cuts]:
    places = range(max(cuts.stub_before, cuts.drop_before), protected)
    with_results = [place for place in places if isinstance(one := entries[place], ModelSaid) and one.calls]
    return [replace(cuts, stub_before=place + 1) for place in with_results]


def _drops(entries: Sequence[Entry], cuts: Cuts, protected: int, turn_starts_at: int) -> list[Cuts]:
    """Between entries only, so a call and its result go together; the running turn's message stays."""
    return [
        replace(cuts, drop_before=place, keep=turn_starts_at if turn_starts_at < place else None, summary=None)
        for place in range(cuts.drop_before + 1, protected + 1)
        if place < len(entries)
    ]


def _first_that_fits(candidates: Sequence[Cuts], measure: Callable[[Cuts], int], target: int) -> Cuts | None:
    """Each candidate leaves less than the one before; the last one when none fits."""
    if not candidates:
        return None
    place = bisect_left(candidates, -target, key=lambda one: -measure(one))
    return candidates[min(place, len(candidates) - 1)]
