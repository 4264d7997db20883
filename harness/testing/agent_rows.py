"""The agents that are programs of their own as rows of the conformance matrix: what each calls things, and cannot do.

Each is found as a user's is: by its name on PATH.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.testing.row import MADE_UP_KEY, NO_WAY_OUT, Row, Spell, Words, scripted
from harness.testing.scenario import ASK, RUN

_NOT_WITHDRAWN = "no scripted answer of the model makes this agent take a request back"


# --- claude, as itself and behind ACP --------------------------------------------------------------------------------

CLAUDE_NAMES = {RUN: "Bash", ASK: "AskUserQuestion"}


def spell_for_claude(one: Mapping[str, Any]) -> Mapping[str, Any]:
    if one["name"] == RUN:
        return {**one, "name": CLAUDE_NAMES[RUN]}
    if one["name"] == ASK:
        questions = [
            {
                "question": asked["text"],
                "header": f"Choice {number}",
                "options": [{"label": label, "description": f"{label}, please"} for label in asked["options"]],
                "multiSelect": asked.get("multi_select", False),
            }
            for number, asked in enumerate(one["questions"], 1)
        ]
        return {**one, "name": CLAUDE_NAMES[ASK], "arguments": {"questions": questions}}
    return one


# --- codex -----------------------------------------------------------------------------------------------------------

_CODEX_NAMES = {RUN: "exec_command", ASK: "request_user_input"}


def _spell_for_codex(one: Mapping[str, Any]) -> Mapping[str, Any]:
    if one["name"] == RUN:
        return {**one, "name": _CODEX_NAMES[RUN], "arguments": {"cmd": one["arguments"]["command"]}}
    if one["name"] == ASK:
        questions = [
            {
                "id": f"q{number}",
                "header": f"Choice {number}",
                "question": asked["text"],
                "options": [{"label": label, "description": f"{label}, please"} for label in asked["options"]],
            }
            for number, asked in enumerate(one["questions"], 1)
        ]
        return {**one, "name": _CODEX_NAMES[ASK], "arguments": {"questions": questions}}
    return one


def _codex_options(url: str, directory: Path) -> Mapping[str, Any]:
    home = str(directory / "home")
    return {"base_url": f"{url}/v1", "key": MADE_UP_KEY, "home": home, "env": {**NO_WAY_OUT, "HOME": home}}


CODEX = scripted(
    "codex",
    _codex_options,
    model="gpt-5.4",
    spell=_spell_for_codex,
    internal_names=_CODEX_NAMES,
    exempt={
        "request-withdrawn": _NOT_WITHDRAWN,
        "max-tokens": "it cannot be told a limit of output tokens: asking for one is refused",
        "question-multi-select": "its tool lets the user choose one option, never several",
    },
    known_gaps={
        "approval-changed": "it runs a command only as the model wrote it: with other arguments it is denied",
        "approval-denied": "it tells its model that a command was rejected, and not why",
        "exact-values": "it answers a call itself whose arguments hold half a character",
        "tool-shapes": "it always shows its model one tool of its own, which answers that it is unavailable",
    },
    program="codex",
)

# --- ACP agents ------------------------------------------------------------------------------------------------------


def _spelled(names: Mapping[str, str], argument: str = "command", **more: Any) -> Spell:
    """Calls of the agent's own shell in its words; the host's tools as the agent names them to its model."""

    def spell(one: Mapping[str, Any]) -> Mapping[str, Any]:
        if one["name"] == RUN:
            return {**one, "name": names[RUN], "arguments": {argument: one["arguments"]["command"], **more}}
        return one

    return spell


def _home(directory: Path) -> dict[str, Any]:
    return {"home": str(directory / "home"), "isolated_home": True}


def _opencode_options(url: str, directory: Path) -> Mapping[str, Any]:
    model = {
        "name": "Scripted",
        "tool_call": True,
        "attachment": True,
        "limit": {"context": 10_000_000, "output": 8000},
        "cost": {"input": 1, "output": 2},
        "modalities": {"input": ["text", "image"], "output": ["text"]},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": MADE_UP_KEY},
        "models": {"m": model, "other": model},
    }
    config = {"model": "scripted/m", "small_model": "scripted/m", "provider": {"scripted": provider}}
    return {**_home(directory), "env": {**NO_WAY_OUT, "OPENCODE_CONFIG_CONTENT": json.dumps(config)}}


def _gemini_options(url: str, directory: Path) -> Mapping[str, Any]:
    return {**_home(directory), "env": {**NO_WAY_OUT, "GEMINI_API_KEY": MADE_UP_KEY, "GOOGLE_GEMINI_BASE_URL": url}}


def _claude_acp_options(url: str, directory: Path) -> Mapping[str, Any]:
    return {**_home(directory), "env": {**NO_WAY_OUT, "ANTHROPIC_API_KEY": MADE_UP_KEY, "ANTHROPIC_BASE_URL": url}}


def _codex_acp_options(url: str, directory: Path) -> Mapping[str, Any]:
    provider = {
        "name": "scripted",
        "base_url": f"{url}/v1",
        "env_key": "SCRIPTED_KEY",
        "wire_api": "responses",
        "request_max_retries": 1,
        "stream_max_retries": 1,
    }
    home = directory / "home"
    home.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} = {json.dumps(value)}" for name, value in provider.items()]
    settings = ['model_provider = "scripted"', "[model_providers.scripted]", *lines, ""]
    (home / "config.toml").write_text("\n".join(settings), encoding="utf-8")
    return {**_home(directory), "env": {**NO_WAY_OUT, "SCRIPTED_KEY": MADE_UP_KEY, "CODEX_HOME": str(home)}}


_ACP_EXEMPT = {
    "request-withdrawn": _NOT_WITHDRAWN,
    "max-tokens": "it cannot be told a limit of output tokens: asking for one is refused",
}
_NO_LIMIT = {"max-turns": "it cannot be told a limit of model calls: asking for one is refused"}
_CHANGED = "it runs a call only as the model wrote it: with other arguments it is denied"
_NO_REASON = "it tells its model that a call was rejected, and not why"
_NUMBERS = "its runtime reads numbers as JavaScript does, and answers half characters itself"
_CALLS_UNKNOWN = "it does not tell how many model calls a turn took"
_SILENT_RETRY = "it calls the model again and says nothing of it"

GEMINI_WORDS = Words(
    re.compile(r"<untrusted_context>\n(.*)\n</untrusted_context>", re.DOTALL),
    "its model reads each result between '<untrusted_context>' tags",
)
CODEX_ACP_WORDS = Words(
    re.compile(r"Wall time: \d+\.\d{4} seconds\nOutput:(.*)", re.DOTALL),
    "its model reads before each result how long the call took",
)

OPENCODE = scripted(
    "acp:opencode",
    _opencode_options,
    model="scripted/m",
    spell=_spelled({RUN: "bash"}, description="Runs."),
    internal_names={RUN: "bash"},
    exempt=_ACP_EXEMPT | _NO_LIMIT,
    known_gaps={
        "approval-changed": _CHANGED,
        "budget": "it tells what a turn has cost when the turn is over: the budget ends the next one",
        "exact-values": _NUMBERS,
        "provider-down": _SILENT_RETRY,
        "rate-limited": _SILENT_RETRY,
        "unauthorized": "it does not tell a refused key from other failures",
        "usage-once": _CALLS_UNKNOWN,
    },
    program="opencode",
    program_option="program",
)
GEMINI = scripted(
    "acp:gemini",
    _gemini_options,
    model="gemini-2.5-pro",
    spell=_spelled({RUN: "run_shell_command"}),
    words=GEMINI_WORDS,
    internal_names={RUN: "run_shell_command"},
    exempt=_ACP_EXEMPT
    | _NO_LIMIT
    | {"provider-down": "it calls the model again for minutes, and says nothing of it"}
    | dict.fromkeys(("continued", "peer-killed"), "it keeps no session that another process could take up"),
    known_gaps={
        "rate-limited": _SILENT_RETRY,
        "refusal": "it does not tell a refusal from an answer",
        "usage-once": _CALLS_UNKNOWN,
        "approval-always": "an 'always' does not hold, because every call of its own tools is to be asked for",
        "approval-changed": _CHANGED,
        "approval-denied": _NO_REASON,
        "cut-stream": "it does not tell a connection that broke from other failures",
        "exact-values": _NUMBERS,
    },
    program="gemini",
    program_option="program",
)
CLAUDE_ACP = scripted(
    "acp:claude-agent-acp",
    _claude_acp_options,
    model="claude-sonnet-4-6",
    spell=spell_for_claude,
    internal_names=CLAUDE_NAMES,
    exempt=_ACP_EXEMPT | {"provider-down": "it calls the model again for minutes, and says nothing of it"},
    known_gaps={
        "approval-always": "an 'always' for its shell is written into the work directory",
        "approval-changed": _CHANGED,
        "approval-denied": _NO_REASON,
        "cut-stream": "it may have passed on half an answer before the connection broke, and never takes it back",
        "exact-values": _NUMBERS,
        "rate-limited": _SILENT_RETRY,
        "unauthorized": "it does not tell a refused key from other failures",
        "usage-once": _CALLS_UNKNOWN,
    },
    chance=frozenset({"cut-stream"}),
    program="claude-agent-acp",
    program_option="program",
)
CODEX_ACP = scripted(
    "acp:codex-acp",
    _codex_acp_options,
    model="gpt-5.4",
    spell=_spell_for_codex,
    words=CODEX_ACP_WORDS,
    mixes_calls="the calls of one round reach the host in an order of chance",
    internal_names={RUN: "exec_command"},
    exempt=_ACP_EXEMPT | _NO_LIMIT | {"canary": "it asks nobody about its own tools: those that act are never opened"},
    known_gaps={
        "cut-stream": "it repeats what it had streamed and does not take it back",
        "exact-values": _NUMBERS,
        "provider-down": _SILENT_RETRY,
        "rate-limited": _SILENT_RETRY,
        "refusal": "it does not tell a refusal from an answer",
        "tool-shapes": "it always shows its model tools of its own",
        "unauthorized": "it says in its own words that a key was refused",
        "usage-once": _CALLS_UNKNOWN,
    },
    program="codex-acp",
    program_option="program",
)

# --- copilot ---------------------------------------------------------------------------------------------------------

_COPILOT_NAMES = {RUN: "bash", ASK: "ask_user"}


def _spell_for_copilot(one: Mapping[str, Any]) -> Mapping[str, Any]:
    if one["name"] == RUN:
        return {**one, "name": "bash", "arguments": {"command": one["arguments"]["command"], "description": "Runs."}}
    if one["name"] == ASK:
        [asked] = one["questions"][:1]
        return {**one, "name": "ask_user", "arguments": {"question": asked["text"], "choices": asked["options"]}}
    return one


def _copilot_options(url: str, directory: Path) -> Mapping[str, Any]:
    home = str(directory / "home")
    cache = {"COPILOT_CACHE_HOME": str(Path(tempfile.gettempdir()) / "harness-copilot-cache")}
    return {"base_url": f"{url}/v1", "key": MADE_UP_KEY, "home": home, "env": {**NO_WAY_OUT, **cache}}


_COPILOT_EXEMPT = {
    "request-withdrawn": _NOT_WITHDRAWN,
    "max-tokens": "it cannot be told a limit of output tokens: asking for one is refused",
    "max-turns": "it cannot be told a limit of model calls: asking for one is refused",
    "question-multi-select": "its tool lets the user choose one option, never several",
}

_COPILOT_GAPS = {
    "approval-changed": _CHANGED,
    "exact-values": _NUMBERS,
    "refusal": "it does not tell a refusal from an answer",
    "unauthorized": "it says in its own words that a key was refused",
}

COPILOT_SDK = scripted(
    "copilot:sdk",
    _copilot_options,
    model="scripted",
    spell=_spell_for_copilot,
    internal_names=_COPILOT_NAMES,
    exempt=_COPILOT_EXEMPT,
    known_gaps=_COPILOT_GAPS,
    program="copilot",
)
COPILOT_ACP = scripted(
    "copilot:acp",
    _copilot_options,
    model="scripted",
    spell=_spell_for_copilot,
    internal_names=_COPILOT_NAMES,
    exempt=_COPILOT_EXEMPT,
    known_gaps=_COPILOT_GAPS,
    program="copilot",
)

AGENTS: tuple[Row, ...] = (CODEX, COPILOT_SDK, COPILOT_ACP, OPENCODE, GEMINI, CLAUDE_ACP, CODEX_ACP)
