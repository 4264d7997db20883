"""The manifest: every behaviour we promise, one sentence each, and the mark that ties a test to it.

A test that proves a behaviour says so with `@requirement("turn:cancel:one-result-per-call")`. `test_requirements.py`
checks both directions: every id carried by a test is listed here, and every id listed here is carried by a test,
except known gaps, which state what is missing.
"""

from collections.abc import Iterable

import pytest

from contract_tests.requirements.anthropic_surface import ANTHROPIC_SURFACE
from contract_tests.requirements.bridge import BRIDGE
from contract_tests.requirements.chat import CHAT
from contract_tests.requirements.claude import CLAUDE
from contract_tests.requirements.cli import CLI
from contract_tests.requirements.clients import CLIENTS
from contract_tests.requirements.conformance import CONFORMANCE
from contract_tests.requirements.connectors import CONNECTORS
from contract_tests.requirements.entry import Requirement
from contract_tests.requirements.field import FIELD
from contract_tests.requirements.model_loop import MODEL_LOOP
from contract_tests.requirements.openai_surface import OPENAI_SURFACE
from contract_tests.requirements.orchestrator import ORCHESTRATOR
from contract_tests.requirements.policy import POLICY
from contract_tests.requirements.processes import PROCESSES
from contract_tests.requirements.repository import REPOSITORY
from contract_tests.requirements.stacking import STACKING
from contract_tests.requirements.store import STORE
from contract_tests.requirements.surfaces import SURFACES
from contract_tests.requirements.turn import TURN


def _by_id(requirements: Iterable[Requirement]) -> dict[str, Requirement]:
    found: dict[str, Requirement] = {}
    for entry in requirements:
        if entry.id in found:
            raise ValueError(f"the requirement '{entry.id}' is listed twice: keep one of them")
        found[entry.id] = entry
    return found


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Mark a test as proof of these requirements.

    Raises:
        LookupError: an id is not in the manifest.
    """
    for one in ids:
        if one not in REQUIREMENTS:
            raise LookupError(f"no requirement '{one}': add it to contract_tests/requirements/")
    return pytest.mark.requirement(*ids)


REQUIREMENTS: dict[str, Requirement] = _by_id(
    [
        *ANTHROPIC_SURFACE,
        *BRIDGE,
        *CHAT,
        *CLAUDE,
        *CLI,
        *CLIENTS,
        *CONFORMANCE,
        *CONNECTORS,
        *FIELD,
        *MODEL_LOOP,
        *OPENAI_SURFACE,
        *ORCHESTRATOR,
        *POLICY,
        *PROCESSES,
        *REPOSITORY,
        *STACKING,
        *STORE,
        *SURFACES,
        *TURN,
    ]
)
