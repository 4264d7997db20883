"""Any `ConversationalLLM` as a tool of another one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import anyio

from harness.contract.content import TextBlock
from harness.contract.conversational_llm import ConversationalLLM
from harness.contract.options import ConversationOptions
from harness.contract.output import StopReason
from harness.contract.requests import HostRequest
from harness.contract.tools import ToolCall, ToolDescriptor
from harness.errors import HarnessError
from harness.orchestrator.approvals import Approver, Decision
from harness.orchestrator.arguments import arguments_of
from harness.orchestrator.caller import Caller
from harness.orchestrator.completion import Completion
from harness.orchestrator.lines import Line, RequestLine
from harness.orchestrator.tool_context import ToolContext
from harness.orchestrator.tool_provider import ToolOutcome, failure, without_surrogates
from harness.orchestrator.tool_registry import ToolRegistry, ToolSource

TASK = "task"
_SCHEMA = {
    "type": "object",
    "properties": {TASK: {"type": "string", "description": "What to do, with everything that has to be known for it."}},
    "required": [TASK],
    "additionalProperties": False,
}


class AgentTool:
    """A tool that has another agent or model work on a task, each call in a conversation of its own.

    What the agent wants to do needs the same leave as what its caller does: the caller's policy decides, and the
    caller's people are asked. It may use what is left of the caller's budget, or less by its own `options`. Without a
    caller (outside of a run) nobody gives leave.
    """

    def __init__(
        self,
        llm: ConversationalLLM,
        *,
        name: str,
        description: str,
        instructions: str | None = None,
        options: ConversationOptions | None = None,
        tools: Iterable[ToolSource] | ToolRegistry = (),
        max_calls: int | None = None,
        max_depth: int = 1,
        max_concurrent: int = 1,
        read_only: bool | None = None,
    ) -> None:
        """`max_calls` counts within one conversation; `max_depth` is how deep agents may call agents; `max_concurrent`
        calls run side by side, others wait. Mark it `read_only` only when no tool of the agent's changes anything."""
        self.label = f"agent '{name}'"
        self.name = name
        self._llm = llm
        self._options = options or ConversationOptions()
        if instructions is not None:
            self._options = self._options.model_copy(update={"system_prompt": instructions})
        self._tools = tools
        self._max_calls = max_calls
        self._max_depth = max_depth
        self._room = anyio.Semaphore(max_concurrent)
        self._calls_without_caller = Counter[str]()
        self._descriptor = ToolDescriptor(
            name=name, description=description, input_schema_json=json.dumps(self.input_schema), read_only=read_only
        )

    @property
    def input_schema(self) -> Mapping[str, Any]:
        return _SCHEMA

    async def list_tools(self) -> Sequence[ToolDescriptor]:
        return [self._descriptor]

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutcome:
        """The agent's answer; why it did not work, or had no leave to begin, is an error result."""
        caller = context.caller
        depth = caller.depth if caller is not None else 0
        if depth >= self._max_depth:
            return failure(f"{self.label} was not asked: agents may call agents only {self._max_depth} deep.")
        calls = caller.spending.calls if caller is not None else self._calls_without_caller
        if self._max_calls is not None and calls[self.name] >= self._max_calls:
            return failure(f"{self.label} was not asked: it was called {self._max_calls} times already, which is all.")
        calls[self.name] += 1
        async with self._room:
            if caller is not None and caller.spending.is_used_up:
                return failure(f"{self.label} was not asked: the budget is used up.")
            return await self._ask(arguments_of(call), context, caller)

    def message(self, arguments: Mapping[str, Any], caller: Caller | None) -> str:
        """What the agent is told."""
        return str(arguments[TASK])

    async def _ask(self, arguments: Mapping[str, Any], context: ToolContext, caller: Caller | None) -> ToolOutcome:
        from harness.orchestrator.run import run_to_completion  # it builds on the tools, and this is one

        options = self._options
        if caller is not None:
            timeouts = options.timeouts.model_copy(update={"approval_ms": caller.approval_ms})
            limits = caller.spending.left.within(options.limits)
            options = options.model_copy(update={"limits": limits, "timeouts": timeouts})
        steps = 0

        def tell(line: Line) -> None:
            nonlocal steps
            if isinstance(line, RequestLine):
                steps += 1
                context.progress(steps, None, f"{self.name}: {line.request.tool_name or line.request.kind}")

        try:
            done = await run_to_completion(
                self._llm,
                self.message(arguments, caller),
                tools=self._tools,
                options=options,
                inside=caller,
                approver="deny" if caller is None else _Named(self.name, caller.approver),
                on_line=tell,
            )
        except HarnessError as error:
            return failure(f"{self.label} could not be asked: {error.message}")
        if caller is not None:
            caller.spending.add_inside(done.usage)
        return self._outcome(done)

    def _outcome(self, done: Completion) -> ToolOutcome:
        text = without_surrogates(done.content or "")
        if done.error is not None:
            said = f" Until then it said: {text}" if text else ""
            return failure(f"{self.label} failed: {done.error.message}.{said}")
        if done.stop_reason != StopReason.END_TURN:
            text = f"{text}\n[{self.label} was cut off: {done.stop_reason}]".lstrip()
        return ToolOutcome([TextBlock(text=text)], is_error=not text)


class _Named:
    """Asks the caller's people, and says which agent wants it."""

    def __init__(self, name: str, approver: Approver) -> None:
        self._name = name
        self._approver = approver

    async def decide(self, request: HostRequest) -> Decision | None:
        title = f"[{self._name}] {request.title or request.tool_name or request.kind}"
        return await self._approver.decide(request.model_copy(update={"title": title}))
