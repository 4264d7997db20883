"""What changes from run to run, taken out of traffic and traces by value: ids, paths, times (pure).

Two recordings of one scenario then differ only where the peer does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

VOLATILE_IDS = (
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"\b(?:msg_|toolu_|req_|resp_|call_|item_|fc_|rs_|chatcmpl-)[0-9a-f]{12}\d{4}\b",
    r"\breq_[0-9]+_[0-9a-f]+\b",
    r"\b(?:ses|msg|prt|per|que)_[0-9a-f]{12}[0-9A-Za-z]{14}\b",
    r"(?:/[\w.-]+)*/harness-[a-z]+-[a-z0-9_]{8}(?=/)",
    r"/[\w./-]+/\d+\.sock\b",
    r"(?<=/)[\w-]{32}(?=/mcp\b)",
    r"(?<=Bearer )[\w-]{43}\b",
    r'(?<="HARNESS_BRIDGE_TOKEN","value":")[\w-]{43}',
    r'(?<="processId":")\d+(?=")',
    r"(?<=Chunk ID: )[0-9a-f]{6}\b",
    r"(?<=Wall time: )\d+\.\d{4}\b",
)
"""UUIDs, the ids of a scripted model, request ids of ours, ids of OpenCode, directories for a moment, sockets, a
bridge's address and token, commands of Codex."""
VOLATILE_FIELDS = (
    *("duration_ms", "duration_api_ms", "durationMs", "elapsed_time_seconds", "tool_duration_ms", "uptime_ms"),
    *("ttft_ms", "ttft_stream_ms", "time_to_request_ms", "timestamp_ms", "create_time", "pid"),
    *("first_content_frame_ms", "request_sent_wall_ms"),
    *("startedAt", "startedAtMs", "completedAt", "completedAtMs", "createdAt", "updatedAt", "recencyAt"),
    *("emittedAtMs", "sentAtMs", "turn_started_at_unix_ms", "timestampMs"),
    *("duration", "dispatchDurationMs", "modelCallDurationMs", "activeTimeMs"),
    *("ttftMs", "outputTtftMs", "timeToFirstTokenMs", "interTokenLatencyMs"),
)
"""Members of a peer's JSON whose number is a time or a process."""
_NUMBERS = re.compile(rf'("(?:{"|".join(VOLATILE_FIELDS)})\\*":\s?)-?\d+(?:\.\d+)?')
_MACHINE = re.compile(r'("serverName":\s?)"[^"]*"')
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_DAYS = re.compile(r"/20\d\d/\d\d/\d\d/rollout-20\d\d-\d\d-\d\dT\d\d-\d\d-\d\d")
_PORTS = re.compile(r"(?<=127\.0\.0\.1:)\d+")
_IDS = re.compile("|".join(VOLATILE_IDS))


class Scrubber:
    """Replaces each volatile value by a name; the same value always gets the same one."""

    def __init__(self, values: Mapping[str, str]) -> None:
        """`values` are known by heart: value -> name, such as the path of a temporary directory."""
        self._values = dict(sorted(values.items(), key=lambda one: -len(one[0])))
        self._ids: dict[str, str] = {}
        self._ports: dict[str, str] = {}

    def scrub(self, text: str) -> str:
        for value, name in self._values.items():
            text = text.replace(value, name)
        text = _IDS.sub(self._name_of, text)
        text = _MACHINE.sub(r'\g<1>"<machine>"', _NUMBERS.sub(r"\g<1>0", text))
        text = _PORTS.sub(lambda found: self._ports.setdefault(found[0], f"<port {len(self._ports) + 1}>"), text)
        text = _DAYS.sub("/2026/01/01/rollout-2026-01-01T00-00-00", text)
        return _TIMES.sub("2026-01-01T00:00:00Z", text)

    def _name_of(self, found: re.Match[str]) -> str:
        return self._ids.setdefault(found[0], f"<id {len(self._ids) + 1}>")
