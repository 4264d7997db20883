"""Which version a program on this machine is, asked once while its file stays the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio

from connectors._environment import base_environment
from connectors._process import open_process
from harness.errors import ConnectorUnavailable, PeerLost

Version = tuple[int, int, int]

_SECONDS = 30.0


def parse_version(text: str) -> Version | None:
    """`0.171.0` out of what a program prints; null if there is none."""
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def version_text(version: Version) -> str:
    return ".".join(str(part) for part in version)


def packaged_version(program: Path) -> Version | None:
    """What the npm package that the program lies in says; null if it lies in none. Some agents know no `--version`."""
    for folder in program.resolve().parents[:3]:
        manifest = folder / "package.json"
        if manifest.is_file():
            try:
                told: object = json.loads(manifest.read_text(encoding="utf-8")).get("version")
            except (ValueError, AttributeError):
                return None
            return parse_version(told) if isinstance(told, str) else None
    return None


class ProgramVersions:
    """The versions of one kind of program; `remedy` is what to type where it is missing, strange or too old."""

    def __init__(self, name: str, remedy: str, minimum: Version | None = None) -> None:
        self._name = name
        self._remedy = remedy
        self._minimum = minimum
        self._known: dict[tuple[Path, int], Version] = {}

    async def version_of(
        self, program: Path, argv: Sequence[str], environ: Mapping[str, str], extra: Mapping[str, str] | None = None
    ) -> Version:
        """What its package says, else what `argv` prints; `program` is the file that tells whether it has changed.

        Raises:
            ConnectorUnavailable: it is missing, prints no version, or an older one than the minimum; says what to type.
        """
        try:
            key = (program, program.stat().st_mtime_ns)
        except OSError:
            raise ConnectorUnavailable(f"there is no program '{program}'; {self._remedy}") from None
        if key not in self._known:
            self._known[key] = packaged_version(program) or await self._printed(argv, environ, extra or {})
        version = self._known[key]
        if self._minimum is not None and version < self._minimum:
            raise ConnectorUnavailable(
                f"'{program}' is {self._name} {version_text(version)}; at least {version_text(self._minimum)} is "
                f"needed; {self._remedy}",
                reason="wrong_version",
            )
        return version

    async def _printed(self, argv: Sequence[str], environ: Mapping[str, str], extra: Mapping[str, str]) -> Version:
        asked = " ".join(argv)
        printed = ""
        try:
            with anyio.fail_after(_SECONDS):
                async with open_process(argv, env=base_environment(environ, extra=extra), name=self._name) as running:
                    printed = (await running.receive())[0].decode("utf-8", "replace")
        except PeerLost as error:
            raise ConnectorUnavailable(
                f"'{asked}' failed: {error.message}; {self._remedy}",
                exit_code=error.exit_code,
                stderr_tail=error.stderr_tail or None,
            ) from error
        except TimeoutError:
            raise ConnectorUnavailable(f"'{asked}' printed nothing within {_SECONDS:g} s; {self._remedy}") from None
        version = parse_version(printed)
        if version is None:
            raise ConnectorUnavailable(
                f"'{asked}' printed '{printed[:80]}', which is no version; {self._remedy}", reason="wrong_version"
            )
        return version
