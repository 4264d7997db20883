"""What Copilot is as an ACP agent, and what of it is known. Pure."""

from __future__ import annotations

from connectors._kept_policy import Unasked
from connectors._programs import Version
from connectors.acp.agent import Agent, Usage
from harness.contract.capabilities import CallIds, Denial, Parallel

TESTED: frozenset[Version] = frozenset({(1, 0, 102)})
MINIMUM: Version = (1, 0, 81)
HOW_TO_INSTALL = "type: npm install -g @github/copilot"
HOW_TO_LOG_IN = "type: copilot login, or give the options base_url and key"
INTERNAL_TOOLS = ("bash", "create", "edit", "glob", "grep", "task", "view", "web_fetch")
ASK_USER = "ask_user"
EVENTS = (
    *("session.error", "model.call_failure", "assistant.turn_retry", "session.info", "assistant.usage"),
    *("assistant.message", "tool.execution_start", "session.compaction_complete"),
)
"""What Copilot is asked to tell beside ACP's updates: without it a failure looks like an answer."""

_SELDOM_TRIED = frozenset({"task", "web_fetch"})
UNASKED = Unasked(acts=_SELDOM_TRIED)
"""In the mode of its SDKs."""

COPILOT_ACP = Agent(
    name="copilot",
    program="copilot",
    remedy=HOW_TO_INSTALL,
    login_remedy=HOW_TO_LOG_IN,
    tested=TESTED,
    variables=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
    resume="session/load",
    internal_tools=INTERNAL_TOOLS,
    usage=Usage.NONE,  # told by events, per model call
    parallel=Parallel.ALL,
    denial=Denial.ENDS_TURN,
    call_ids=CallIds.MATCHED,
    images_in_prompt=True,
    max_result_chars=20_000,
    # below the working directory
    unasked=Unasked(looks=frozenset({"glob", "grep", "view"}), acts=_SELDOM_TRIED),
)
