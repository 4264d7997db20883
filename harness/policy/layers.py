"""Several policies over one another: one of them decides, the denials of all stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.contract.delegation import PolicyRule, RequestPolicy

RESTRICTIVE = RequestPolicy()
"""What holds where nobody said anything: every approval is asked about."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One policy and where it comes from. One that is not trusted can only deny and ask."""

    policy: RequestPolicy
    label: str
    is_trusted: bool = True

    @property
    def is_held_back(self) -> bool:
        """Whether something in it does not count for want of trust."""
        widens = bool(self.policy.allow) or self.policy.mode != RESTRICTIVE.mode
        return not self.is_trusted and widens


def layered(layers: Sequence[Layer]) -> RequestPolicy:
    """The policy of the first trusted layer, with the deny rules of all, and the ask rules of what stands before it.

    Layers come strongest first; without a trusted one the restrictive default stands below them.
    """
    asked: list[PolicyRule] = []
    decides = RESTRICTIVE
    for layer in layers:
        if layer.is_trusted:
            decides = layer.policy
            break
        asked += layer.policy.ask
    return decides.model_copy(
        update={
            "deny": _once([rule for layer in layers for rule in layer.policy.deny]),
            "ask": _once([*asked, *decides.ask]),
        }
    )


def _once(rules: Sequence[PolicyRule]) -> list[PolicyRule]:
    kept: list[PolicyRule] = []
    for rule in rules:
        if rule not in kept:
            kept.append(rule)
    return kept
