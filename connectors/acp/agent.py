"""What differs between agents that all speak ACP: one value per agent, and the table of those known by name. Pure.

Everything here was seen in the agent's own traffic. An agent that is only named by its command gets `UNKNOWN`: the
bridge, the permissions and nothing that was not announced.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from connectors._kept_policy import Unasked
from connectors._programs import Version
from harness.contract.capabilities import CallIds, Denial, Parallel, ToolErrorFlag

SERVER_NAME = "host"
"""Under which our tools are known to the agent."""


class Usage(StrEnum):
    """What the figures in an answer to a prompt count."""

    TURN = "turn"
    SESSION = "session"
    LAST_CALL = "last_call"
    QUOTA = "quota"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Agent:
    name: str
    program: str | None
    """What it is called on PATH; null where the command is given."""
    arguments: tuple[str, ...] = ()
    remedy: str = "name a program that speaks ACP"
    login_remedy: str = "log in with the agent's own command"
    tested: frozenset[Version] = frozenset()
    variables: tuple[str, ...] = ()
    """Of our environment, beyond what any program gets: credentials and where they belong."""
    auth_method: str | None = None
    """To be called after `initialize`, where the agent wants it."""
    mode: str | None = None
    """The mode in which it asks the client."""
    resume: str | None = None
    """The method that takes up a session: `session/resume` replays nothing, `session/load` the whole history."""
    call_id_meta: str | None = None
    """The member of a tools/call's `_meta` that holds the model's id."""
    has_prefixed_ids: bool = False
    """Ids in the stream are `<tool>__<model's id>`."""
    lists_tools_late: bool = False
    """It connects to our bridge with the first prompt only."""
    needs_unique_ids: bool = False
    internal_tools: tuple[str, ...] = ()
    web_search_tool: str | None = None
    usage: Usage = Usage.NONE
    reports_cost: bool = False
    asks_approvals: bool = True
    asks_questions: bool = False
    parallel: Parallel = Parallel.NONE
    denial: Denial = Denial.CONTINUES
    call_ids: CallIds = CallIds.MATCHED
    images_in_prompt: bool = False
    images_in_results: bool = False
    error_flag: ToolErrorFlag = ToolErrorFlag.TEXT_ONLY
    max_result_chars: int | None = None
    max_call_wait_ms: int | None = None
    title_method: str | None = None
    """Gives the session a title; without one the agent has a model make it up, which costs a call of its own."""
    forgets_open_calls: bool = False
    """What is open when it is killed is not in the session that it takes up; the others close it there themselves."""
    takes_json_for_structured: bool = False
    """It reads a text that is JSON as structured content, and fails the call where that is no object."""
    takes_sources: bool = True
    """Whether it can be given MCP servers beside ours."""
    takes_prompt: bool = False
    """Whether the caller's system prompt can be given to it."""
    unasked: Unasked | None = None
    """What it may do without a question when it asks most; null where it does not tell what it asks for: then it is
    given no policy."""


_CLAUDE_TOOLS = (
    *("Agent", "AskUserQuestion", "Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "TaskCreate", "TaskGet"),
    *("TaskList", "TaskStop", "TaskUpdate", "WebFetch", "WebSearch", "Write"),
)

OPENCODE = Agent(
    name="opencode",
    program="opencode",
    arguments=("acp",),
    remedy="type: npm install -g opencode-ai",
    login_remedy="type: opencode auth login",
    tested=frozenset({(1, 18, 33)}),
    variables=("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
    resume="session/resume",
    internal_tools=("bash", "edit", "glob", "grep", "read", "task", "todowrite", "webfetch", "write"),
    usage=Usage.LAST_CALL,
    reports_cost=True,
    parallel=Parallel.ALL,
    denial=Denial.ENDS_TURN,
    images_in_prompt=True,
    images_in_results=True,
    takes_prompt=True,
    unasked=Unasked(acts=frozenset({"task"}), of_sources=False),
)
GEMINI = Agent(
    name="gemini",
    program="gemini",
    arguments=("--acp",),
    remedy="type: npm install -g @google/gemini-cli",
    login_remedy="type: gemini, and log in there, or set GEMINI_API_KEY",
    tested=frozenset({(0, 61, 0)}),
    variables=("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_API_KEY"),
    auth_method="gemini-api-key",
    has_prefixed_ids=True,
    internal_tools=(
        *("glob", "grep_search", "list_directory", "read_file", "read_many_files", "replace", "run_shell_command"),
        *("save_memory", "web_fetch", "google_web_search", "write_file"),
    ),
    web_search_tool="google_web_search",
    usage=Usage.QUOTA,
    images_in_prompt=True,
    images_in_results=True,
    max_call_wait_ms=300_000,
    takes_json_for_structured=True,
    # the settings that close its own tools close those of every server but ours
    takes_sources=False,
)
CLAUDE_AGENT_ACP = Agent(
    name="claude-agent-acp",
    program="claude-agent-acp",
    remedy="type: npm install -g @agentclientprotocol/claude-agent-acp",
    login_remedy="type: claude /login, or set ANTHROPIC_API_KEY",
    tested=frozenset({(0, 49, 0)}),
    variables=("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"),
    resume="session/resume",
    forgets_open_calls=True,
    call_id_meta="claudecode/toolUseId",
    lists_tools_late=True,
    internal_tools=_CLAUDE_TOOLS,
    web_search_tool="WebSearch",
    usage=Usage.TURN,
    reports_cost=True,
    asks_questions=True,
    parallel=Parallel.READ_ONLY,
    call_ids=CallIds.EXACT,
    images_in_prompt=True,
    images_in_results=True,
    error_flag=ToolErrorFlag.KEPT,
    max_result_chars=500_000,
    takes_prompt=True,
    unasked=Unasked(
        acts=frozenset({"Agent", "TaskCreate", "TaskGet", "TaskList", "TaskStop", "TaskUpdate"}), of_sources=False
    ),
)
CODEX_ACP = Agent(
    name="codex-acp",
    program="codex-acp",
    remedy="type: npm install -g @agentclientprotocol/codex-acp",
    login_remedy="type: codex login, or set OPENAI_API_KEY",
    tested=frozenset({(2, 6, 0)}),
    variables=("OPENAI_API_KEY", "CODEX_HOME", "CODEX_PATH"),
    mode="workspace-write",
    resume="session/resume",
    title_method="session/set_title",
    call_id_meta="callId",
    # its shell runs in a sandbox and asks nobody there: it stays closed
    internal_tools=("view_image", "web_search"),
    web_search_tool="web_search",
    asks_approvals=False,
    usage=Usage.TURN,
    parallel=Parallel.READ_ONLY,
    call_ids=CallIds.EXACT,
    images_in_prompt=True,
    images_in_results=True,
    max_call_wait_ms=300_000,
    takes_prompt=True,
)
UNKNOWN = Agent(name="agent", program=None)

AGENTS = {agent.name: agent for agent in (OPENCODE, GEMINI, CLAUDE_AGENT_ACP, CODEX_ACP)}
