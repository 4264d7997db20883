"""What was typed, checked and put into the contract's words."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.cli.configuration import AdvisorChoice, JournalChoice, read_configuration
from harness.cli.failures import complain
from harness.cli.policies import policy_in_force
from harness.cli.resuming import Earlier, directory_label
from harness.cli.run import Approve, RunArguments
from harness.cli.tool_sources import read_servers
from harness.cli.values import milliseconds, names, pairs
from harness.contract.delegation import RequestPolicy
from harness.contract.options import UNATTENDED_APPROVAL_MS, ConversationOptions, Effort, Limits, Timeouts
from harness.errors import InvalidArgument
from harness.orchestrator.mcp_config import McpServer
from harness.orchestrator.tool_files import load_tools
from harness.policy import RESTRICTIVE
from harness.settings import Price


@dataclass(frozen=True)
class Plan:
    """A run that could begin now."""

    prompt: str | None
    """Null where a turn is taken up that has not ended, and where the messages come later."""
    tools: Sequence[Callable[..., Any]]
    options: ConversationOptions
    approve: Approve
    url: str | None
    servers: Sequence[McpServer] = ()
    openapi: Sequence[str] = ()
    ujmw: Sequence[str] = ()
    policy: RequestPolicy = RESTRICTIVE
    prices: tuple[Price, ...] = ()
    advisor: AdvisorChoice | None = None
    earlier: Earlier = field(default_factory=Earlier)
    store: str | None = None
    journal: JournalChoice = field(default_factory=JournalChoice)
    flies_canary: bool = True
    is_unattended: bool = False
    """Nobody said how to answer, and nobody is there to ask."""

    def with_connector(self, name: str) -> Plan:
        return replace(self, options=self.options.model_copy(update={"connector": name}))


def plan_of(arguments: RunArguments, *, has_prompt: bool = True) -> Plan:
    """Reads stdin where the prompt is there, and runs the tools files; without `has_prompt` messages come later.

    Raises:
        InvalidArgument: an option or a prompt that cannot be used.
        ConfigError: a tools file that cannot be used.
    """
    approve = _approve(arguments)
    configuration = read_configuration(arguments.config)
    force = policy_in_force(arguments.policy, configuration, _project(arguments))
    for remark in force.remarks:
        complain(remark)
    timeouts = Timeouts(
        tool_ms=milliseconds(arguments.tool_timeout, "--tool-timeout"),
        turn_ms=milliseconds(arguments.timeout, "--timeout"),
        approval_ms=None if approve == Approve.ASK else UNATTENDED_APPROVAL_MS,
    )
    given = pairs(arguments.option)
    options = ConversationOptions(
        connector=arguments.connector,
        model=arguments.model,
        system_prompt=arguments.system,
        internal_tools=names(arguments.internal_tools),
        limits=_limits(arguments, configuration.limits),
        timeouts=timeouts,
        cwd=_cwd(arguments),
        effort=Effort(arguments.effort) if arguments.effort else None,
        connector_options_json=json.dumps(given) if given else None,
        labels=[directory_label(Path.cwd())],
    )
    earlier = _earlier(arguments)
    tools = load_tools(*arguments.tools)
    servers = read_servers(arguments.mcp_config)
    # a dry run says nothing to anybody, and a turn that is taken up was told before
    says_nothing = not has_prompt or (arguments.prompt is None and (arguments.dry_run or earlier))
    return Plan(
        None if says_nothing else _prompt(arguments.prompt),
        tools,
        options,
        approve,
        arguments.url,
        servers=servers,
        openapi=arguments.openapi,
        ujmw=arguments.ujmw,
        policy=force.policy,
        prices=configuration.prices,
        advisor=configuration.advisor,
        earlier=earlier,
        store=arguments.store,
        journal=configuration.journal,
        flies_canary=not arguments.skip_canary,
        is_unattended=arguments.approve is None and approve == Approve.DENY,
    )


def _earlier(arguments: RunArguments) -> Earlier:
    """What is for the beginning of a conversation is refused with one that has begun: it keeps its own."""
    earlier = Earlier(arguments.latest, arguments.resume, arguments.fork)
    if not earlier:
        return earlier
    if sum((arguments.latest, arguments.resume is not None, arguments.fork is not None)) > 1:
        raise InvalidArgument("--continue, --resume and --fork exclude each other: keep one")
    for option, value in (
        ("--system", arguments.system),
        ("--internal-tools", arguments.internal_tools),
        ("--cwd", arguments.cwd),
        ("--mcp-config", arguments.mcp_config),
        ("--option", arguments.option),
        ("--max-turns", arguments.max_turns),
        ("--max-output-tokens", arguments.max_output_tokens),
        ("--timeout", arguments.timeout),
        ("--tool-timeout", arguments.tool_timeout),
    ):
        if value:
            raise InvalidArgument(f"{option}: a conversation keeps what it was begun with; begin a new one for another")
    return earlier


def _limits(arguments: RunArguments, configured: Limits) -> Limits:
    """What was typed, else what the configuration says."""
    typed = {"max_turns": arguments.max_turns, "max_output_tokens": arguments.max_output_tokens}
    return configured.model_copy(update={name: value for name, value in typed.items() if value is not None})


def _project(arguments: RunArguments) -> Path:
    """The directory whose `.harness/policy.toml` is looked at: the peer's here, else where the command was typed."""
    return arguments.cwd if arguments.cwd is not None and arguments.url is None else Path.cwd()


def _prompt(typed: str | None) -> str:
    if typed is None and sys.stdin.isatty():
        raise InvalidArgument("no prompt: give it as an argument, or on stdin")
    try:
        text = sys.stdin.buffer.read().decode() if typed in (None, "-") else str(typed)
        text.encode()  # what a shell could not decode is in the text as surrogates
    except UnicodeError:
        raise InvalidArgument("the prompt is not UTF-8") from None
    if not text.strip():
        raise InvalidArgument("the prompt is empty: give it as an argument, or on stdin")
    return text


def _approve(arguments: RunArguments) -> Approve:
    if arguments.approve is None:
        is_attended = sys.stdin.isatty() and sys.stderr.isatty()
        return Approve.ASK if is_attended else Approve.DENY
    if arguments.approve == Approve.WAIT and arguments.url is None:
        raise InvalidArgument("--approve wait: needs --url, here nobody else could answer")
    return arguments.approve


def _cwd(arguments: RunArguments) -> str | None:
    if arguments.cwd is None:
        return None
    if arguments.url is not None:
        return str(arguments.cwd)  # a directory over there
    if not arguments.cwd.is_dir():
        raise InvalidArgument(f"--cwd: '{arguments.cwd}' is no directory")
    return str(Path(arguments.cwd).resolve())
