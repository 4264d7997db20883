"""Where UJMW's values differ from the contract's in more than spelling (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.contract.delegation import PolicyRule
from harness.contract.requests import HostRequest, RequestKind
from harness.contract.state import TurnState
from harness.contract.tools import ToolDescriptor
from harness.contract.value import JsonValue, Value

OPTION_DETAILS = "optionDetails"
ERROR_MESSAGE = "errorMessage"

ALSO_READ: Mapping[type[Value], Mapping[str, str]] = {
    ToolDescriptor: {
        "inputJsonSchema": "input_schema_json",
        "outputJsonSchema": "output_schema_json",
        "readOnlyHint": "read_only",
    },
    HostRequest: {OPTION_DETAILS: "options"},
}
"""Further names under which a field is read."""

NOT_READ: Mapping[type[Value], frozenset[str]] = {HostRequest: frozenset({"options"})}
"""Names that are written only: what they say stands elsewhere too."""

READ_AS: Mapping[tuple[type[Value], str], Any] = {(PolicyRule, "kind"): RequestKind}
"""Fields that are any text to the contract, and an enum to those who write them here."""


def reshaped(kind: type[Value], members: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The members of a value as they are written."""
    if kind is HostRequest:
        details = members["options"]
        return {**members, "options": [option["id"] for option in details], OPTION_DETAILS: details}
    if kind is TurnState and "error" in members:
        return {**members, ERROR_MESSAGE: members["error"]["message"]}
    return members
