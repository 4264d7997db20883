"""What a person may choose in the client: the policy's mode, and per turn the model and the effort (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.contract.capabilities import LlmCapabilities
from harness.contract.delegation import PolicyMode, RequestPolicy
from harness.contract.options import Effort, TurnOptions
from harness.errors import InvalidArgument
from harness.wire.json_rpc import JsonObject

MODE, MODEL, EFFORT = "mode", "model", "effort"
_AS_BEGUN = "default"
_MODES = {
    PolicyMode.DEFAULT: ("Ask", "Asks you about everything that no rule of the policy decides"),
    PolicyMode.ACCEPT_EDITS: ("Accept edits", "Edits files in the working directory without asking"),
    PolicyMode.READ_ONLY: ("Read only", "Refuses whatever may change something"),
    PolicyMode.DONT_ASK: ("Don't ask", "Refuses what no rule of the policy allows, and asks nobody"),
    PolicyMode.BYPASS: ("Bypass", "Allows everything that no rule of the policy refuses or asks about"),
}


@dataclass(frozen=True, slots=True)
class Choices:
    """What can be chosen in a session, and what is chosen."""

    policy: RequestPolicy
    models: tuple[str, ...] = ()
    """None where the model cannot be changed."""
    efforts: tuple[str, ...] = ()
    model: str | None = None
    effort: str = _AS_BEGUN

    @classmethod
    def of(cls, policy: RequestPolicy, models: Sequence[str], capabilities: LlmCapabilities) -> Choices:
        can_change = capabilities.turn_options
        return cls(
            policy,
            tuple(models) if MODEL in can_change and len(models) > 1 else (),
            (_AS_BEGUN, *Effort) if EFFORT in can_change else (),
            models[0] if models else None,
        )

    def chosen(self, config_id: str, value: str) -> Choices:
        """Raises:
        InvalidArgument: no such option, or no such value.
        """
        known = {MODE: tuple(_MODES), MODEL: self.models, EFFORT: self.efforts}.get(config_id)
        if not known:
            raise InvalidArgument(f"there is no option '{config_id}' in this session")
        if value not in known:
            raise InvalidArgument(f"'{config_id}' has no value '{value}'; known: {', '.join(known)}")
        if config_id == MODE:
            return replace(self, policy=self.policy.model_copy(update={"mode": PolicyMode(value)}))
        return replace(self, model=value) if config_id == MODEL else replace(self, effort=value)

    @property
    def turn_options(self) -> TurnOptions:
        """What differs from how the conversation was begun."""
        model = self.model if self.models and self.model != self.models[0] else None
        return TurnOptions(model=model, effort=None if self.effort == _AS_BEGUN else Effort(self.effort))

    def told(self) -> JsonObject:
        """For the answer that opens a session. Clients that know options ignore the modes."""
        return {"modes": self._modes(), "configOptions": self.options()}

    def options(self) -> list[JsonObject]:
        listed = [_select(MODE, "Mode", MODE, str(self.policy.mode), {str(one): _MODES[one][0] for one in _MODES})]
        if self.models:
            listed.append(_select(MODEL, "Model", MODEL, self.model or "", {one: one for one in self.models}))
        if self.efforts:
            names = {one: one.replace("_", " ").capitalize() for one in self.efforts}
            listed.append(_select(EFFORT, "Effort", "thought_level", self.effort, names))
        return listed

    def _modes(self) -> JsonObject:
        available = [
            {"id": str(mode), "name": name, "description": description} for mode, (name, description) in _MODES.items()
        ]
        return {"currentModeId": str(self.policy.mode), "availableModes": available}


def _select(config_id: str, name: str, category: str, current: str, values: dict[str, str]) -> JsonObject:
    return {
        "type": "select",
        "id": config_id,
        "name": name,
        "category": category,
        "currentValue": current,
        "options": [{"value": value, "name": shown} for value, shown in values.items()],
    }
