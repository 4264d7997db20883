"""What a connector notes of its peers' processes in the `SessionLog`, so that another process of ours finds them.

A connector whose peers are processes appends `process_note(process.record)` when one has started, and inherits
`RecordedProcesses`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import anyio.to_thread

from connectors._family import ProcessRecord, reap_stale, resident_bytes
from connectors._json import JsonObject, object_in, text_in
from harness.contract.value import JsonValue

_PROCESS = "peer_process"


def process_note(record: ProcessRecord) -> JsonValue:
    return {_PROCESS: {"mark": record.mark, "pid": record.pid, "start_time": record.start_time}}


def recorded_processes(records: Sequence[JsonValue]) -> list[ProcessRecord]:
    """Every process that was noted; most of them have ended long since."""
    found: list[ProcessRecord] = []
    for told in (object_in(object_in(one).get(_PROCESS)) for one in records):
        mark, pid, start_time = text_in(told.get("mark")), told.get("pid"), told.get("start_time")
        if mark and isinstance(pid, int) and isinstance(start_time, int):
            found.append(ProcessRecord(mark, pid, start_time))
    return found


def newest_note(records: Sequence[JsonValue], key: str) -> JsonObject | None:
    """What was noted last under this name."""
    noted = (object_in(record)[key] for record in reversed(records) if key in object_in(record))
    return next((object_in(one) for one in noted), None)


class RecordedProcesses:
    """The `Reaps` and `Weighs` of a connector: by mark and start time, never by name."""

    async def reap(self, records: Sequence[JsonValue]) -> None:
        """Ends what the processes of a dead conversation left."""
        stale = recorded_processes(records)
        if stale:
            await anyio.to_thread.run_sync(partial(reap_stale, stale))

    def resident_bytes(self, records: Sequence[JsonValue]) -> int:
        """The memory that the conversation's living processes take, with all they started."""
        known = recorded_processes(records)
        return resident_bytes(known) if known else 0
