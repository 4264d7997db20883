"""Steps that only tell something -> turn events, read by read (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from connectors.fake import parts
from connectors.fake import steps as scripted
from connectors.fake.script import quoted
from connectors.fake.steps import Step
from harness.contract.content import TextBlock
from harness.contract.options import OutputDetail
from harness.contract.output import InternalToolResult
from harness.turn import events
from harness.turn.events import OutputProduced, TurnEvent, UsageReported


def stream_of(
    step: scripted.TextStep | scripted.ThinkingStep, item_id: str, results: Mapping[str, str]
) -> list[OutputProduced]:
    """One delta per piece, each a read of its own."""
    if isinstance(step, scripted.TextStep):
        build, pieces = events.text_delta, step.text
    else:
        build, pieces = events.thinking_delta, step.thinking
    return [
        build(quoted(piece, results), item_id=step.item_id or item_id, parent_call_id=step.parent_call_id)
        for piece in pieces
    ]


def event_of(step: Step, results: Mapping[str, str], detail: OutputDetail | str) -> TurnEvent | None:
    """The one event of a step that neither waits nor ends anything; null when it is not to be shown."""
    match step:
        case scripted.MessageStep(message=blocks, phase=phase, item_id=item_id, parent_call_id=parent):
            content = [
                TextBlock(text=quoted(block.text, results)) if isinstance(block, TextBlock) else block
                for block in blocks
            ]
            return events.message(content, phase=phase, item_id=item_id, parent_call_id=parent)
        case scripted.DiscardStep(discard=item_id, reason=reason):
            return events.item_discarded(item_id, reason)
        case scripted.PlanStep(plan=entries):
            return events.plan(entries)
        case scripted.UsageStep(usage=usage):
            return UsageReported(usage)
        case scripted.NoticeStep(notice=notice):
            return events.notice(notice.code, notice.text)
        case scripted.RawStep(raw=raw) if detail == OutputDetail.RAW:
            return events.raw(raw.channel, raw.direction, raw.text)
        case _:
            return None


def tool_started(tool: parts.ScriptedInternalTool) -> OutputProduced:
    return events.internal_tool_started(
        tool.call_id,
        tool.name,
        arguments_json=tool.arguments_text,
        source=tool.source,
        parent_call_id=tool.parent_call_id,
    )


def tool_finished(tool: parts.ScriptedInternalTool, result: str) -> OutputProduced:
    ran = result != InternalToolResult.REFUSED
    return events.internal_tool_finished(
        tool.call_id,
        result,
        result_text=tool.result_text if ran else None,
        duration_ms=tool.duration_ms if ran else None,
        parent_call_id=tool.parent_call_id,
    )
