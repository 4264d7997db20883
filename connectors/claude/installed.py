"""Which CLI is on this machine, and of which version."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path

import anyio

from connectors._environment import base_environment
from connectors._process import open_process
from connectors.claude.config import ClaudeOptions
from connectors.claude.versions import HOW_TO_INSTALL, Version, check_version, parse_version
from harness.errors import ConnectorUnavailable, PeerLost

_VERSION_SECONDS = 20.0


def find_program(claude: ClaudeOptions, environ: Mapping[str, str]) -> Path:
    """The option `command`, else the CLI in the wheel of the extra, else `claude` on PATH.

    Raises:
        ConnectorUnavailable: there is none, or only one that would have to be run by a shell; says what to type.
    """
    if claude.command is not None:
        return _native(claude.command)
    # looked up, not imported: the package would cost a second and we need only its binary
    package = importlib.util.find_spec("claude_agent_sdk")
    if package is not None and package.origin is not None:
        bundled = Path(package.origin).parent / "_bundled" / "claude"
        if bundled.is_file():
            return bundled
    on_path = shutil.which("claude", path=environ.get("PATH"))
    if on_path is None:
        raise ConnectorUnavailable(f"the Claude Code CLI is not installed; type: {HOW_TO_INSTALL}")
    return _native(Path(on_path))


def _native(program: Path) -> Path:
    """A shim of a package manager cannot be started without a shell, which would read its arguments as commands."""
    if program.suffix.lower() in (".cmd", ".bat", ".ps1"):
        raise ConnectorUnavailable(f"'{program}' is a script for a shell and no program; type: {HOW_TO_INSTALL}")
    return program


class ProgramVersions:
    """The versions of the CLIs that were asked, each asked once while its file stays the same."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, int], Version] = {}

    async def version_of(self, program: Path, environ: Mapping[str, str]) -> Version:
        """The version, checked to be one we can talk to.

        Raises:
            ConnectorUnavailable: missing, no Claude Code, or too old; says what to type.
        """
        try:
            key = (program, program.stat().st_mtime_ns)
        except OSError:
            raise ConnectorUnavailable(
                f"there is no Claude Code CLI '{program}'; name another, or type: {HOW_TO_INSTALL}"
            ) from None
        if key not in self._known:
            self._known[key] = noted_version(program) or await _printed_version(program, environ)
        check_version(self._known[key], str(program))
        return self._known[key]


def noted_version(program: Path) -> Version | None:
    """The wheel notes the version beside its binary, which spares a start of the CLI."""
    note = program.with_name("claude.version")
    return parse_version(note.read_text()) if note.is_file() else None


async def _printed_version(program: Path, environ: Mapping[str, str]) -> Version:
    printed = ""
    try:
        with anyio.fail_after(_VERSION_SECONDS):
            async with open_process([str(program), "--version"], env=base_environment(environ), name="claude") as cli:
                printed = (await cli.receive())[0].decode("utf-8", "replace")
    except PeerLost as error:
        raise ConnectorUnavailable(
            f"'{program} --version' failed: {error.message}; type: {HOW_TO_INSTALL}",
            exit_code=error.exit_code,
            stderr_tail=error.stderr_tail or None,
        ) from error
    except TimeoutError:
        raise ConnectorUnavailable(
            f"'{program} --version' printed nothing within {_VERSION_SECONDS:g} s; is it Claude Code?"
        ) from None
    version = parse_version(printed)
    if version is None:
        raise ConnectorUnavailable(
            f"'{program} --version' printed '{printed[:80]}'; that is no Claude Code; type: {HOW_TO_INSTALL}",
            reason="wrong_version",
        )
    return version
