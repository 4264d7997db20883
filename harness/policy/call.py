"""What a policy looks at: one call, and the place where it would run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from harness.contract.requests import HostRequest, RequestKind
from harness.contract.value import JsonValue


@dataclass(frozen=True, slots=True)
class Place:
    """Where paths are looked up."""

    cwd: str
    home: str | None = None
    resolve: Callable[[str], str] | None = None
    """The real path with every link followed, also of what does not exist yet. Without it (the files are on another
    machine) no allow rule with a path matches: nobody could know where a link leads."""


@dataclass(frozen=True, slots=True)
class PolicyCall:
    """A tool call, or the call that an approval is about."""

    tool: str
    arguments_json: str = "{}"
    kind: RequestKind | str = RequestKind.APPROVAL
    connector: str | None = None
    read_only: bool | None = None

    @classmethod
    def of(cls, request: HostRequest, connector: str | None = None) -> PolicyCall:
        return cls(
            tool=request.tool_name or "",
            arguments_json=request.arguments_json or "{}",
            kind=request.kind,
            connector=connector,
            read_only=request.read_only,
        )

    @property
    def arguments(self) -> Mapping[str, JsonValue] | None:
        """Null where two readers could understand them differently: no object, or a name given twice."""
        try:
            value: JsonValue = json.loads(self.arguments_json, object_pairs_hook=_without_repetition)
        except (ValueError, RecursionError):
            return None
        return cast(Mapping[str, JsonValue], value) if isinstance(value, dict) else None


def _without_repetition(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member is given twice")
    return members
