"""The list of agents that live tests use is plain, complete and pinned."""

import re

from contract_tests.peers_installed import peer_program, pinned_versions
from contract_tests.requirements import requirement


@requirement("peers:pinned")
def test_every_agent_is_pinned_to_one_version_and_looked_for_where_it_is_installed() -> None:
    versions = pinned_versions()
    assert sorted(versions) == [
        "acpx",
        "claude-agent-acp",
        "codex",
        "codex-acp",
        "copilot",
        "gemini",
        "mcp-inspector",
        "opencode",
    ]
    assert [version for version in versions.values() if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []
    for name in versions:
        program = peer_program(name)
        assert program is None or program.is_file()
