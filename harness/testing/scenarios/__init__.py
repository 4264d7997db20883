"""What every connector is tried with: one scenario per module, driven through `ConversationalLLM` only."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module

from harness.testing.scenario import Scenario


def all_scenarios() -> Mapping[str, Scenario]:
    """Every scenario by name, in the order of the names."""
    modules = (import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    scenarios = [one for module in modules for one in vars(module).values() if isinstance(one, Scenario)]
    return {one.name: one for one in sorted(scenarios, key=lambda one: one.name)}
