"""Options -> command line and environment."""

import json
from pathlib import Path
from typing import Any

import pytest

from connectors.claude.argv import Handed, Launch, Start, launch, login_of, needs_isolated_home
from connectors.claude.config import RESTRICTED_OPTIONS, ClaudeOptions, read_options
from connectors.claude.connector import ClaudeConnector
from connectors.claude.memory import Fork
from connectors.claude.versions import MINIMUM, Version, check_version, features_of, parse_version
from contract_tests.requirements import requirement
from harness.contract import ConversationOptions, Effort, Limits, ToolDescriptor
from harness.errors import ConnectorUnavailable, InvalidArgument, NotSupported

USER = {"PATH": "/bin", "HOME": "/home/user", "LC_ALL": "C.UTF-8"}
WITH_KEY = USER | {"ANTHROPIC_API_KEY": "sk-env", "ANTHROPIC_BASE_URL": "https://proxy.example"}


def started(
    options: ConversationOptions | None = None,
    claude: ClaudeOptions | None = None,
    environ: dict[str, str] = WITH_KEY,
    home: Path | None = None,
    resume: bool = False,
    version: Version = (2, 1, 332),
) -> Launch:
    options = options or ConversationOptions()
    return launch(
        "/x/claude",
        options,
        claude or ClaudeOptions(),
        start=Start("u-1", resumes=resume),
        features=features_of(version),
        environ=environ,
        home=home,
    )


def value_of(argv: list[str], flag: str) -> str:
    return argv[argv.index(flag) + 1]


@requirement("claude:start:isolated")
def test_the_flags_isolate_the_cli_and_make_it_a_pure_llm() -> None:
    argv = started().argv
    assert argv[0] == "/x/claude"
    assert {"-p", "--verbose", "--include-partial-messages", "--strict-mcp-config", "--disable-slash-commands"} <= set(
        argv
    )
    assert value_of(argv, "--setting-sources") == ""
    assert value_of(argv, "--tools") == ""
    assert value_of(argv, "--permission-prompt-tool") == "stdio"
    assert value_of(argv, "--session-id") == "u-1"
    assert "--allowedTools" not in argv
    assert "--resume" not in argv
    assert value_of(started(resume=True).argv, "--resume") == "u-1"


@requirement("claude:start:options")
def test_options_become_flags_and_variables() -> None:
    options = ConversationOptions(
        model="opus",
        tools=[ToolDescriptor(name="a")],
        internal_tools=["Bash", "Read"],
        effort=Effort.EXTRA_HIGH,
        limits=Limits(max_turns=3, max_output_tokens=1000, cost_budget_usd=0.00001),
    )
    start = started(options)
    assert value_of(start.argv, "--model") == "opus"
    assert value_of(start.argv, "--tools") == "Bash,Read"
    assert value_of(start.argv, "--allowedTools") == "mcp__host"
    assert value_of(start.argv, "--effort") == "xhigh"
    assert value_of(start.argv, "--max-turns") == "3"
    assert value_of(start.argv, "--max-budget-usd") == "0.00001"
    assert start.env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "1000"
    assert value_of(started(ConversationOptions(effort=Effort.NONE)).argv, "--thinking") == "disabled"
    with pytest.raises(InvalidArgument, match="'--debug'"):
        started(ConversationOptions(model="--debug"))


@requirement("R-J4", "R-K1")
def test_nothing_long_or_secret_is_on_the_command_line() -> None:
    tools = [ToolDescriptor(name=f"tool_{n}", description="d" * 1000) for n in range(100)]
    options = ConversationOptions(system_prompt="p" * 100_000, tools=tools)
    line = "\0".join(started(options, ClaudeOptions.model_validate({"key": "sk-secret"})).argv)
    assert len(line) < 4096
    assert "sk-secret" not in line and "ppp" not in line and "tool_1" not in line


@requirement("claude:start:credentials")
def test_the_key_is_the_options_or_the_environments_and_never_anothers() -> None:
    assert started().env["ANTHROPIC_API_KEY"] == "sk-env"
    assert started().env["ANTHROPIC_BASE_URL"] == "https://proxy.example"

    own = started(claude=ClaudeOptions.model_validate({"key": "sk-own"})).env
    assert own["ANTHROPIC_API_KEY"] == "sk-own"
    assert "ANTHROPIC_BASE_URL" not in own

    login = started(claude=ClaudeOptions(login="user"), environ=WITH_KEY | {"CLAUDE_CODE_OAUTH_TOKEN": "t"}).env
    assert "ANTHROPIC_API_KEY" not in login
    assert login["CLAUDE_CODE_OAUTH_TOKEN"] == "t"
    assert login["HOME"] == "/home/user"

    with pytest.raises(ConnectorUnavailable, match="ANTHROPIC_API_KEY") as refused:
        started(claude=ClaudeOptions(login="key"), environ=USER)
    assert refused.value.detail["reason"] == "not_logged_in"


@requirement("claude:start:credentials", "R-E5")
@pytest.mark.parametrize(
    ("options", "environ", "login", "isolated"),
    [
        ({}, USER, "user", False),
        ({}, WITH_KEY, "key", True),
        ({"key": "x"}, USER, "key", True),
        ({"login": "user"}, WITH_KEY, "user", False),
        ({"isolated_home": True}, USER, "user", True),
        ({"isolated_home": False}, WITH_KEY, "key", False),
        ({"home": "/h"}, USER, "user", True),
    ],
)
def test_a_login_keeps_the_users_home_and_a_key_does_not_need_it(
    options: dict[str, Any], environ: dict[str, str], login: str, isolated: bool
) -> None:
    claude = ClaudeOptions.model_validate(options)
    assert login_of(claude, environ) == login
    assert needs_isolated_home(claude, environ) is isolated


@requirement("R-E5", "R-J7")
def test_the_environment_is_an_allow_list_with_an_isolated_home_and_direct_loopback() -> None:
    environ = WITH_KEY | {
        "CLAUDECODE": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "AWS_SECRET_ACCESS_KEY": "x",
        "XDG_CONFIG_HOME": "/home/user/.config",
        "HTTPS_PROXY": "http://proxy:1",
        "NO_PROXY": "example.org",
    }
    env = started(environ=environ, home=Path("/h")).env
    assert not {"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "AWS_SECRET_ACCESS_KEY", "XDG_CONFIG_HOME"} & set(env)
    assert env["HOME"] == "/h"
    assert env["NO_PROXY"] == "example.org,127.0.0.1,localhost,::1"
    assert env["HTTPS_PROXY"] == "http://proxy:1"
    added = started(claude=ClaudeOptions(env={"HOME": "/mine", "EXTRA": "1"}), home=Path("/h")).env
    assert (added["HOME"], added["EXTRA"]) == ("/mine", "1")


@requirement("R-K5", "R-A4")
def test_the_environment_switches_off_foreign_traffic_and_time_limits() -> None:
    env = started().env
    for name in ("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER"):
        assert env[name] == "1"
    assert env["CLAUDE_CODE_DISABLE_ATTACHMENTS"] == "1"
    assert int(env["MCP_TOOL_TIMEOUT"]) > 10 * 24 * 3600 * 1000


@requirement("claude:start:options")
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"comand": "x"}', "'comand'"),
        ('{"login": "root"}', "'login'"),
        ('{"grace_seconds": 0}', "'grace_seconds'"),
        ('{"env": {"A=B": "x"}}', "'env'"),
        ('{"key": ""}', "'key'"),
        ("[]", "'connector_options_json'"),
        ("{", "'connector_options_json'"),
    ],
)
def test_a_wrong_option_is_refused_by_name_and_never_repeated(text: str, named: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read_options(ConversationOptions(connector_options_json=text))
    assert named in refused.value.message
    assert "known options: background_tasks, bare, base_url" in refused.value.message


@requirement("R-K2")
def test_a_secret_is_not_shown_by_its_options_nor_by_a_dry_run(tmp_path: Path) -> None:
    options = ConversationOptions(
        connector_options_json=json.dumps({"key": "sk-secret", "command": str(tmp_path / "claude")}), cwd=str(tmp_path)
    )
    assert "sk-secret" not in repr(read_options(options))
    with pytest.raises(InvalidArgument) as refused:
        read_options(ConversationOptions(connector_options_json='{"key": "sk-secret", "home": 1}'))
    assert "sk-secret" not in str(refused.value)

    shown = ClaudeConnector(USER).dry_run(options)
    assert "sk-secret" not in json.dumps(shown)
    assert shown["argv"][0] == str(tmp_path / "claude")
    assert "ANTHROPIC_API_KEY" in shown["env"]


@requirement("claude:start:options")
async def test_what_cannot_be_honoured_is_refused_and_never_ignored() -> None:
    for options in (ConversationOptions(resume_from="x"),):
        with pytest.raises(NotSupported):
            await ClaudeConnector(WITH_KEY).get_capabilities(options)


@requirement("claude:start:options")
def test_options_that_name_programs_targets_and_files_are_restricted() -> None:
    assert {"command", "base_url", "home", "env"} == RESTRICTED_OPTIONS
    assert set(ClaudeOptions.model_fields) > RESTRICTED_OPTIONS


@requirement("claude:start:refused")
def test_versions_are_read_and_old_ones_refused() -> None:
    assert parse_version("2.1.332 (Claude Code)") == (2, 1, 332)
    assert parse_version("None") is None
    check_version(MINIMUM, "claude")
    with pytest.raises(ConnectorUnavailable, match=r"2\.1\.196") as refused:
        check_version((2, 1, 196), "claude")
    assert refused.value.detail["reason"] == "wrong_version"


@requirement("claude:start:versions")
def test_flags_that_only_newer_versions_know_are_left_out_for_older_ones() -> None:
    new, old = started().argv, started(version=(2, 1, 197)).argv
    assert value_of(new, "--system-prompt-snapshot") == "off"
    assert "--system-prompt-snapshot" not in old
    nobody = ClaudeOptions(permission_prompts="none")
    assert value_of(started(claude=nobody).argv, "--permission-prompts") == "none"
    assert "--permission-prompt-tool" not in started(claude=nobody).argv
    with pytest.raises(NotSupported, match="permission_prompts=none"):
        started(claude=nobody, version=(2, 1, 197))


@requirement("claude:life:fork")
def test_a_fork_has_a_session_of_its_own_that_begins_with_another() -> None:
    argv = Start("u-2", fork=Fork("u-1", "m-1")).flags()
    assert argv == ["--resume", "u-1", "--fork-session", "--resume-session-at", "m-1", "--session-id", "u-2"]
    assert Start("u-2", fork=Fork("u-1", None)).flags() == [
        *("--resume", "u-1", "--fork-session", "--session-id", "u-2"),
    ]


@requirement("claude:start:credentials")
def test_the_minimal_mode_needs_a_key_and_says_so() -> None:
    bare = ClaudeOptions(bare=True)
    assert "--bare" in started(claude=bare).argv
    with pytest.raises(InvalidArgument, match="'bare' needs a key"):
        started(claude=bare, environ=USER)


@requirement("claude:life:background")
def test_background_work_is_off_unless_asked_for() -> None:
    assert started().env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] == "1"
    allowed = started(claude=ClaudeOptions(background_tasks=True))
    assert "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS" not in allowed.env


@requirement("R-A4")
def test_what_the_host_hands_over_stands_in_files_and_flags() -> None:
    handed = Handed(Path("/tmp/x/mcp.json"), "mcp__host__approve", ("Bash", "WebFetch"))
    launched = launch(
        "/x/claude",
        ConversationOptions(),
        ClaudeOptions(),
        start=Start("u-1"),
        features=features_of((2, 1, 332)),
        environ=WITH_KEY,
        home=None,
        handed=handed,
    )
    assert value_of(launched.argv, "--mcp-config") == "/tmp/x/mcp.json"
    assert value_of(launched.argv, "--permission-prompt-tool") == "mcp__host__approve"
    assert value_of(launched.argv, "--disallowedTools") == "Bash,WebFetch"
    assert int(launched.env["MCP_TOOL_TIMEOUT"]) > 24 * 3600 * 1000
    assert launched.env["CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT"] == "0"
