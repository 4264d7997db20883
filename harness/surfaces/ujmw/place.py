"""What a path below `/ujmw` means (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.contract.options import ConversationOptions
from harness.errors import InvalidArgument
from harness.surfaces.operations import CONTRACT_OPERATIONS, ContractOperation
from harness.surfaces.ujmw.names import folded, pascal

PREFIX = "/ujmw"
CONTRACT = "IConversationalLLM"
DOCUMENT = "openapi.json"

OPERATION_NAMES: Mapping[str, ContractOperation] = {pascal(one.name): one for one in CONTRACT_OPERATIONS}
_BY_FOLDED_NAME = {name.lower(): one for name, one in OPERATION_NAMES.items()}


@dataclass(frozen=True, slots=True)
class Place:
    """The service itself, or something of it."""

    connector: str | None = None
    """Whom conversations begun here talk to, unless their options say more."""
    member: str | None = None
    """What stands behind the service's path; null for the service itself."""

    @property
    def operation(self) -> ContractOperation | None:
        return _BY_FOLDED_NAME.get((self.member or "").lower())

    @property
    def base(self) -> str:
        return f"{PREFIX}/{CONTRACT}" if self.connector is None else f"{PREFIX}/{self.connector}/{CONTRACT}"

    def preset(self, options: ConversationOptions | None) -> ConversationOptions | None:
        """The options with the path's connector.

        Raises:
            InvalidArgument: they name another one.
        """
        if self.connector is None:
            return options
        options = options or ConversationOptions()
        named = options.connector or self.connector
        if named.partition(":")[0] != self.connector.partition(":")[0]:
            text = f"the path is of connector '{self.connector}', the options name '{named}': use one of the two"
            raise InvalidArgument(text)
        return options.model_copy(update={"connector": named})


def place_of(path: str) -> Place | None:
    """Where a path leads, written in any case; null for nowhere. A path may end in a slash."""
    parts = path[len(PREFIX) :].removeprefix("/").split("/")
    if parts[-1] == "" and len(parts) > 1:
        parts.pop()
    match parts:
        case [contract] if folded(contract) == folded(CONTRACT):
            return Place()
        case [contract, member] if folded(contract) == folded(CONTRACT):
            return Place(None, member)
        case [connector, contract] if connector and folded(contract) == folded(CONTRACT):
            return Place(_named(connector))
        case [connector, contract, member] if connector and folded(contract) == folded(CONTRACT):
            return Place(_named(connector), member)
        case _:
            return None


def _named(connector: str) -> str:
    """Connectors are lower case; a variant is written as its connector has it."""
    name, colon, variant = connector.partition(":")
    return name.lower() + colon + variant
