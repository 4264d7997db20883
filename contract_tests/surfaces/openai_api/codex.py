"""The real Codex as a user starts it, in a clean environment in which only our server can be reached."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from contract_tests.peers_installed import installed
from harness.surfaces.server import Server

SECONDS = 120
_KEY = "HARNESS_TOKEN"


@dataclass(frozen=True)
class Codex:
    """One user with a home and a directory to work in; `config.toml` is that of docs/openai-endpoint.md."""

    server: Server
    model: str
    directory: Path

    async def ask(self, prompt: str, *, resumes: bool = False) -> list[dict[str, Any]]:
        """What it prints as it goes, one object after the other."""
        home, work = self.directory / "home", self.directory / "work"
        for directory in (home, work):
            directory.mkdir(exist_ok=True)
        (home / "config.toml").write_text(self._config, encoding="utf-8")
        shown = ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        command = ["exec", "resume", "--last"] if resumes else ["exec"]
        with anyio.fail_after(SECONDS):
            done = await anyio.run_process(
                [str(installed("codex")), *command, *shown, prompt],
                env={
                    "HOME": str(self.directory),
                    "CODEX_HOME": str(home),
                    "PATH": "/usr/bin:/bin",
                    "LANG": "C.UTF-8",
                    _KEY: self.server.tokens[0].secret,
                    "HTTPS_PROXY": "http://127.0.0.1:9",
                    "NO_PROXY": "127.0.0.1",
                },
                cwd=work,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        return [json.loads(line) for line in done.stdout.splitlines()]

    @property
    def _config(self) -> str:
        return f"""\
model = "{self.model}"
model_provider = "harness"
web_search = "disabled"

[model_providers.harness]
name = "harness"
base_url = "{self.server.url}/openai/v1"
env_key = "{_KEY}"
wire_api = "responses"
"""


def said(printed: list[dict[str, Any]]) -> list[str]:
    return [item["text"] for item in items(printed) if item["type"] == "agent_message"]


def ran(printed: list[dict[str, Any]]) -> list[str]:
    """What its commands gave."""
    return [item["aggregated_output"].strip() for item in items(printed) if item["type"] == "command_execution"]


def items(printed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line["item"] for line in printed if line["type"] == "item.completed"]
