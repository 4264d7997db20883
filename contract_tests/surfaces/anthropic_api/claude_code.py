"""The real Claude Code as a user starts it, in a clean environment in which only our server can be reached."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from connectors.claude import ClaudeOptions
from connectors.claude.installed import find_program
from harness.surfaces.server import Server

SECONDS = 60


@dataclass(frozen=True)
class ClaudeCode:
    """One user with a home and a directory to work in."""

    server: Server
    model: str
    directory: Path

    @property
    def work(self) -> Path:
        return self.directory / "work"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.directory / "home"),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "ANTHROPIC_BASE_URL": f"{self.server.url}/anthropic",
            "ANTHROPIC_AUTH_TOKEN": self.server.tokens[0].secret,
            "ANTHROPIC_MODEL": self.model,
            "ENABLE_TOOL_SEARCH": "false",
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "DISABLE_AUTOUPDATER": "1",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
        }

    async def ask(self, prompt: str, *options: str) -> list[dict[str, Any]]:
        """What it prints as it goes, one object after the other; the last one is the result."""
        for directory in (self.work, self.directory / "home"):
            directory.mkdir(exist_ok=True)
        program = str(find_program(ClaudeOptions(), {}))
        shown = ["--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Read,Write"]
        with anyio.fail_after(SECONDS):
            done = await anyio.run_process(
                [program, "-p", prompt, *shown, *options],
                env=self.environment,
                cwd=self.work,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        return [json.loads(line) for line in done.stdout.splitlines()]

    def results(self, printed: list[dict[str, Any]]) -> dict[str, str]:
        """What its tools gave, by call id."""
        blocks = [block for line in printed if line["type"] == "user" for block in line["message"]["content"]]
        return {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}
