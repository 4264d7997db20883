"""The manifest: every behaviour we promise, one sentence each, and the mark that ties a test to it.

A test that proves a behaviour says so with `@requirement("turn:cancel:one-result-per-call")`. `test_requirements.py`
checks both directions: every id carried by a test is listed here, and every id listed here is carried by a test,
except known gaps, which state what is missing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Requirement:
    """One behaviour.

    `source` says where it comes from: an id from the field ("R-B1"), a section of the contract, a link to a
    specification, or "ours". `known_gap` says what does not hold yet, in words a user understands.
    """

    id: str
    sentence: str
    source: str
    known_gap: str | None = None


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
            raise LookupError(f"no requirement '{one}': add it to contract_tests/requirements.py")
    return pytest.mark.requirement(*ids)


REQUIREMENTS: dict[str, Requirement] = _by_id(
    (
        # --- packaging and layout -----------------------------------------------------------------------------------
        Requirement(
            "packaging:wheel:three-packages",
            "The wheel holds harness, connectors and bridge_mcp with their data files, and no tests or fixtures.",
            "ours",
        ),
        Requirement(
            "packaging:wheel:runs-alone",
            "The wheel alone in an empty environment gives the command and all three packages; the demo then exits 3 "
            "and names the line that installs the extra.",
            "ours",
        ),
        Requirement(
            "packaging:wheel:demo-with-extra",
            "With the extra 'claude' and nothing else the demo passes.",
            "ours",
        ),
        Requirement(
            "packaging:no-registry-host",
            "No committed file names a package registry: whoever installs chooses where from.",
            "ours",
        ),
        Requirement(
            "layout:public-names-pinned",
            "A public name appears or goes only together with the list that pins it.",
            "ours",
        ),
        Requirement("layout:typed", "Every package tells type checkers that it is typed.", "ours"),
        Requirement(
            "layout:import-rules-cover-every-room",
            "A room of the house that exists is named in the import rules that apply to it.",
            "ours",
        ),
        Requirement("import:cost:harness", "Importing harness loads no pydantic.", "ours"),
        Requirement(
            "import:cost:help",
            "`harness --help` loads neither rich nor pydantic nor a vendor's SDK.",
            "ours",
        ),
    )
)
