"""One tool is delegated to the peer, one is routed to the host, both in one turn."""

from __future__ import annotations

import sys

from harness.contract.requests import HostRequest, HostResponse, RequestKind
from harness.contract.tools import ToolSourceDescriptor, ToolSourceKind
from harness.testing.checks import holds, only, same
from harness.testing.peers import mcp_clock
from harness.testing.scenario import STDIO_SOURCES, Scenario, Stage, call, delegated_call
from harness.testing.talk import choice, result

SOURCE = ToolSourceDescriptor(
    name="clocks", kind=ToolSourceKind.MCP_STDIO, command=sys.executable, args=["-I", mcp_clock.__file__]
)


def _answer(request: HostRequest) -> HostResponse:
    """The source is handed over, not the decision: a peer may ask whether it may use it."""
    if request.kind == RequestKind.APPROVAL:
        return choice(request, "allow_once")
    return result(request, "kept")


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    await talk.llm.delegate_tool_sources(talk.conversation_id, [SOURCE])
    turn = await talk.say(answer=_answer)
    routed = [request for request in turn.requests if request.kind == RequestKind.TOOL_CALL]
    same("the routed tool", only("routed calls", routed).tool_name, "save")
    if stage.capabilities.reports_delegated_calls:
        started, finished = turn.internal_tool("call_1")
        holds("the delegated tool is shown", started.tool_name.endswith("what_time"), started.tool_name)
        same("how it went", finished.result, "ok")
    # what a peer puts before the result of a source of its own is its affair
    holds("both results", turn.text.endswith(f"{mcp_clock.ANSWER}, kept"), turn.text)


SCENARIO = Scenario(
    name="mixed-mode",
    requirements=("conformance:delegation",),
    script=[
        [
            {"calls": [delegated_call("what_time", "call_1", "clocks", mcp_clock.ANSWER)]},
            {"calls": [call("save", "call_2", note="x")]},
            {"text": "{{results.call_1}}, {{results.call_2}}"},
        ]
    ],
    run=run,
    needs=(STDIO_SOURCES,),
)
