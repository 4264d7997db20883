"""The file that tells the CLI its MCP servers. It holds tokens: only the user may read it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bridge_mcp.http import BridgeAddress
from connectors._json import JsonObject
from connectors.claude.argv import MAX_CALL_WAIT_MS


def bridge_server(address: BridgeAddress) -> JsonObject:
    """Our own endpoint, as the CLI's configuration has it."""
    return {
        "type": "http",
        "url": address.url,
        "headers": {"Authorization": f"Bearer {address.token}"},
        # over HTTP the CLI gives up on an answer after 60 s, and on silence after 300 s
        "timeout": MAX_CALL_WAIT_MS,
        # 2.1.197 would begin the first turn without the tools
        "alwaysLoad": True,
    }


@contextmanager
def config_file(servers: dict[str, JsonObject]) -> Generator[Path | None]:
    """The file while the block lasts; null where there is no server to tell."""
    if not servers:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="harness-claude-") as directory:
        path = Path(directory) / "mcp.json"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump({"mcpServers": servers}, file)
        yield path
