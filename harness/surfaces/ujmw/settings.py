"""What a server may choose about its UJMW surface."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UjmwSettings:
    hide_fault_details: bool = False
    """A fault tells its code only; the log has the rest."""
    enums_as_integers: bool = False
    """For clients whose serializer reads no names of enums, such as System.Text.Json without a converter."""
    qualified_contract: str = "AI.SmartStandards.IConversationalLLM"
    """The contract with its namespace, as the information document tells it to clients that compare versions."""
