"""What of our environment a CLI gets: an allow list."""

from connectors._environment import base_environment
from contract_tests.requirements import requirement

NEEDED = {"PATH": "/bin", "HOME": "/home/me", "LANG": "de_DE.UTF-8", "LC_TIME": "C", "https_proxy": "http://proxy:1"}
POLLUTION = {
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CLAUDE_CODE_SSE_PORT": "4711",
    "CODEX_SANDBOX": "seatbelt",
    "COPILOT_AGENT_SESSION_ID": "x",
    "GEMINI_CLI": "1",
    "OPENAI_API_KEY": "sk-1",
    "ANTHROPIC_API_KEY": "sk-2",
    "HARNESS_TOKEN": "t",
    "HARNESS_PROCESS_MARK": "outer",
    "NODE_OPTIONS": "--inspect",
    "LD_PRELOAD": "/tmp/x.so",
    "PYTHONPATH": "/tmp",
}


@requirement("process:environment:allow-list")
def test_only_what_a_program_needs_passes() -> None:
    made = base_environment(NEEDED | POLLUTION)
    assert {name: made[name] for name in NEEDED} == NEEDED
    assert made.keys() & POLLUTION.keys() == set()


@requirement("process:environment:allow-list")
def test_a_connector_names_what_more_its_cli_needs() -> None:
    made = base_environment(
        NEEDED | POLLUTION, keep=("ANTHROPIC_API_KEY", "NOT_SET"), extra={"HOME": "/tmp/h", "A": "b"}
    )
    assert (made["ANTHROPIC_API_KEY"], made["HOME"], made["A"]) == ("sk-2", "/tmp/h", "b")
    assert "NOT_SET" not in made
    assert "OPENAI_API_KEY" not in made


@requirement("process:environment:no-proxy-for-loopback")
def test_a_proxy_never_stands_between_the_cli_and_loopback() -> None:
    made = base_environment({"NO_PROXY": "corp.example, 127.0.0.1", "no_proxy": "other.example"})
    assert made["NO_PROXY"] == made["no_proxy"] == "corp.example,127.0.0.1,other.example,localhost,::1"


@requirement("process:environment:allow-list")
def test_text_is_utf_8_where_no_locale_is_set() -> None:
    assert base_environment({})["LANG"] == "C.UTF-8"
    assert "LANG" not in base_environment({"LC_ALL": "en_GB.UTF-8"})
