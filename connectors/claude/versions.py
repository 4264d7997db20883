"""Which versions of the CLI are known, and what differs between them. Pure."""

from __future__ import annotations

import re

from harness.errors import ConnectorUnavailable

Version = tuple[int, int, int]

MINIMUM: Version = (2, 1, 197)
TESTED: frozenset[Version] = frozenset({(2, 1, 197), (2, 1, 332)})
KEEPS_USER_TEXT: Version = (2, 1, 248)
"""From here on `client_composed` keeps the CLI from expanding `@file` and `/command` in a user's text."""

HOW_TO_INSTALL = "pip install 'level2-harness[claude]'"


def parse_version(text: str) -> Version | None:
    """`2.1.332` out of what the CLI prints; null if there is none."""
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def version_text(version: Version) -> str:
    return ".".join(str(part) for part in version)


def check_version(version: Version, program: str) -> None:
    """Refuses a CLI older than the oldest whose wire is known.

    Raises:
        ConnectorUnavailable: says what to type.
    """
    if version < MINIMUM:
        raise ConnectorUnavailable(
            f"'{program}' is Claude Code {version_text(version)}; at least {version_text(MINIMUM)} is needed; "
            f"type: {HOW_TO_INSTALL}",
            reason="wrong_version",
        )
