"""What a run had seen when a call broke: the error shape of `--output json`, with whatever exists of the rest."""

from __future__ import annotations

import time

from harness.errors import HarnessError
from harness.orchestrator.completion import Completion
from harness.orchestrator.lines import ItemLine, Line, ResponseLine, StartedLine
from harness.orchestrator.turn_record import TurnRecord, completion_of


class RunSoFar:
    """Give `see` to a run as `on_line`; when the run raises, `failed` has what was seen until then."""

    def __init__(self) -> None:
        self._records: list[TurnRecord] = []
        self._began = time.monotonic()

    def see(self, line: Line) -> None:
        match line:
            case StartedLine(conversation_id=conversation_id, turn_id=turn_id):
                self._records.append(TurnRecord(conversation_id, turn_id))
            case ItemLine(item=item):
                self._records[-1].add(item)
            case ResponseLine(response=response):
                self._records[-1].add_reply(response, None)
            case _:
                pass

    def failed(self, error: HarnessError) -> Completion:
        duration_ms = round((time.monotonic() - self._began) * 1000)
        return completion_of(self._records, duration_ms=duration_ms, error=error)
