"""Which versions of the CLI are known, and what differs between them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.errors import ConnectorUnavailable

Version = tuple[int, int, int]

MINIMUM: Version = (2, 1, 197)
TESTED: frozenset[Version] = frozenset({(2, 1, 197), (2, 1, 332)})
HOW_TO_INSTALL = "pip install 'level2-harness[claude]'"

# When each of these came is known only where a version is named that is not in TESTED; else the next tested one counts.
_KEEPS_USER_TEXT: Version = (2, 1, 248)
_332: Version = (2, 1, 332)


@dataclass(frozen=True, slots=True)
class Features:
    """What a version can do that another cannot."""

    keeps_user_text: bool
    """`client_composed` keeps the CLI from expanding `/command` in a user's text."""
    knows_permission_prompts: bool
    """The flag `--permission-prompts`."""
    knows_prompt_snapshot: bool
    """The flag `--system-prompt-snapshot`; where it is left on, a resumed session keeps its first system prompt."""
    takes_new_system_prompt: bool
    """A resumed session gets the system prompt of now."""
    writes_at_once: bool
    """The session is on disk when a turn has ended, so that it can be forked, and resumed after a kill."""


def features_of(version: Version) -> Features:
    is_332 = version >= _332
    return Features(
        keeps_user_text=version >= _KEEPS_USER_TEXT,
        knows_permission_prompts=is_332,
        knows_prompt_snapshot=is_332,
        takes_new_system_prompt=is_332 or version == MINIMUM,
        writes_at_once=is_332,
    )


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


def version_notices(version: Version) -> list[tuple[str, str]]:
    """What a user should know about this version: code and text."""
    told: list[tuple[str, str]] = []
    name = f"Claude Code {version_text(version)}"
    if version > max(TESTED):
        text = f"{name} is newer than the newest tested version, {version_text(max(TESTED))}"
        told.append(("untested_version", text))
    if not features_of(version).keeps_user_text:
        text = f"{name} takes a message that starts with '/' for a command of its own: such a message is refused"
        told.append(("old_version", f"{text}; type: {HOW_TO_INSTALL}"))
    return told
