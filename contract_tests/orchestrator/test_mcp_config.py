"""The `mcpServers` JSON that people have already."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contract_tests.requirements import requirement
from harness.contract.value import Label
from harness.errors import ConfigError
from harness.orchestrator.mcp_config import ListChanges, mcp_servers, read_mcp_config
from harness.orchestrator.routing import Delegate


def servers(**entries: Any) -> Any:
    return mcp_servers({"mcpServers": entries}, {"TOKEN": "t-1", "EMPTY": ""})


@requirement("orchestrator:mcp:config")
def test_entries_of_other_programs_are_read_with_variables_filled_in() -> None:
    files, web, _ = servers(
        files={
            "command": "npx",
            "args": ["-y", "server", "${ROOT:-/srv}"],
            "env": {"A": "${EMPTY}"},
            "autoApprove": [],
        },
        web={"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
        off={"command": "x", "disabled": True},
        bare={"command": "y"},
    )
    assert (files.source.kind, files.source.command, files.source.args) == (
        "mcp_stdio",
        "npx",
        ["-y", "server", "/srv"],
    )
    assert files.source.env == [Label(name="A", value="")]
    assert (web.source.kind, web.source.url) == ("mcp_http", "https://example.com/mcp")
    assert web.source.headers == [Label(name="Authorization", value="Bearer t-1")]
    assert (web.delegate, web.list_changes, web.prefix) == (Delegate.AUTO, ListChanges.FREEZE, "")


@requirement("orchestrator:mcp:config")
def test_our_own_keys_say_what_the_host_wants() -> None:
    entry = {
        "command": "x",
        "cwd": "/srv",
        "delegate": "never",
        "shareSecrets": True,
        "prefix": "gh_",
        "tools": ["a"],
        "listChanged": "fail",
        "timeoutMs": 5,
    }
    [server] = servers(gh=entry)
    assert (server.cwd, server.delegate, server.prefix, server.call_ms) == ("/srv", Delegate.NEVER, "gh_", 5)
    assert (server.source.share_secrets, server.source.tool_names) == (True, ["a"])
    assert server.list_changes == ListChanges.FAIL


@requirement("orchestrator:mcp:config")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ["is not JSON"]),
        ("[]", ["no object 'mcpServers'"]),
        ('{"mcpServers": {"a": {}}}', ["'a'", "either 'command' or 'url'"]),
        ('{"mcpServers": {"a": {"command": 7}}}', ["'a'", "'command'"]),
        ('{"mcpServers": {"a": "x"}}', ["'a'"]),
        ('{"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}', ["'a'", "'sse'"]),
        ('{"mcpServers": {"a": {"command": "${NO_SUCH_VARIABLE_1}"}}}', ["'a'", "'NO_SUCH_VARIABLE_1' is not set"]),
        ('{"mcpServers": {"a": {"command": "x", "delegate": "maybe"}}}', ["'a'", "'delegate'"]),
    ],
)
def test_mistake_names_the_file_the_server_and_the_key(text: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_mcp_config(path)
    assert all(word in caught.value.message for word in [str(path), *words]), caught.value.message
    assert "\n" not in caught.value.message


@requirement("orchestrator:mcp:config")
def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.json"):
        read_mcp_config(tmp_path / "none.json")
    (tmp_path / "good.json").write_text(json.dumps({"mcpServers": {}}))
    assert read_mcp_config(tmp_path / "good.json") == []
