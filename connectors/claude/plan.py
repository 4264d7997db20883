"""Everything that is known before the CLI is started: program, options, tools, directories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import platformdirs

from bridge_mcp.mapping import MappedTools, map_tools
from connectors._history_text import with_history
from connectors.claude.argv import TOOL_PREFIX, Handed, Launch, Start, launch, needs_isolated_home
from connectors.claude.config import ClaudeOptions, read_options
from connectors.claude.installed import find_program
from connectors.claude.turn_shape import shaped
from connectors.claude.versions import Version, features_of
from harness.contract.delegation import Delegation
from harness.contract.options import ConversationOptions
from harness.contract.value import JsonValue
from harness.errors import NotSupported


@dataclass(frozen=True, slots=True)
class Plan:
    program: Path
    options: ConversationOptions
    claude: ClaudeOptions
    tools: MappedTools
    environ: Mapping[str, str]
    cwd: Path
    home: Path | None
    """The isolated home directory; null for the user's."""
    delegation: Delegation

    def launch(self, start: Start, version: Version, handed: Handed) -> Launch:
        return launch(
            str(self.program),
            self.options,
            self.claude,
            start=start,
            features=features_of(version),
            environ=self.environ,
            home=self.home,
            handed=handed,
        )

    def for_turn(self, shape: Mapping[str, JsonValue]) -> Plan:
        """The plan with what one turn asks for of its own."""
        options = shaped(self.options, shape)
        return replace(self, options=options, tools=map_tools(options.tools, prefix=TOOL_PREFIX))


def planned(options: ConversationOptions, environ: Mapping[str, str], delegation: Delegation) -> Plan:
    """
    Raises:
        ConnectorUnavailable: there is no CLI.
        InvalidArgument: connector options or tool schemas that cannot be used.
        NotSupported: something asked for that the CLI cannot do.
        ContentNotSupported: a history that cannot be told as text.
    """
    claude = read_options(options)
    if options.resume_from is not None:
        raise NotSupported("connector 'claude' cannot take up a session by 'resume_from'")
    with_history(options.history, [])
    home: Path | None = None
    if needs_isolated_home(claude, environ):
        home = claude.home or platformdirs.user_state_path("level2-harness") / "claude-home"
    return Plan(
        program=find_program(claude, environ),
        options=options,
        claude=claude,
        tools=map_tools(options.tools, prefix=TOOL_PREFIX),
        environ=environ,
        cwd=Path(options.cwd) if options.cwd is not None else Path.cwd(),
        home=home,
        delegation=delegation,
    )
