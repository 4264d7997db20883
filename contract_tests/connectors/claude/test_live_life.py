"""Conversation life with the real CLI: what a conversation and a turn may ask for, forks, and resumes."""

import base64
import json
import random
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from contract_tests.connectors.claude.cli import Claude, Seen, needs_cli, newest_only, open_claude, result
from contract_tests.requirements import requirement
from harness.contract import (
    Effort,
    HistoryMessage,
    HistoryRole,
    ImageBlock,
    InternalToolStarted,
    ResourceBlock,
    TextBlock,
    ToolDescriptor,
    TurnOptions,
)
from harness.contract.options import SystemPromptMode

pytestmark = needs_cli

PDF = base64.b64encode(b"%PDF-1.4\n%%EOF").decode()


def noise(size: int) -> bytes:
    """A square PNG that cannot be compressed."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = random.Random(1).randbytes(3 * size)
    rows = b"".join(b"\0" + row[n:] + row[:n] for n in range(size))
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(rows, 0))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + pixels + chunk(b"IEND", b"")


def pid_of(seen: Seen) -> int:
    return int(seen.notices("peer_started")[0].split("pid ")[1].split(",")[0])


def body_of(claude: Claude, number: int = -1) -> dict[str, Any]:
    body: Any = claude.model.requests[number].body
    return body


async def say(claude: Claude, text: str, **options: Any) -> Seen:
    turn_id = await claude.harness.submit_user_message(
        claude.conversation_id, [TextBlock(text=text)], TurnOptions(**options)
    )
    return await claude.finished(turn_id)


def texts(body: Mapping[str, Any]) -> list[str]:
    """What users and the model said, without what the CLI adds."""
    said: list[str] = []
    for message in body["messages"]:
        if message["role"] == "system":
            continue
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        said += [b["text"] for b in blocks if b["type"] == "text" and not b["text"].startswith("<system-reminder>")]
    return said


@requirement("claude:life:turn-options")
async def test_what_one_turn_asks_for_holds_for_it_alone_and_adds_no_words(tmp_path: Path) -> None:
    schema = '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'
    script: list[dict[str, Any]] = [
        {"text": "one"},
        {"text": "two"},
        {"calls": [{"name": "StructuredOutput", "arguments": {"n": 5}}]},
        {"text": "four"},
    ]
    with anyio.fail_after(60):
        async with open_claude(script, tmp_path, system_prompt="Base.") as claude:
            first = await say(claude, "First.")
            second = await say(
                claude,
                "Second.",
                model="claude-opus-4-8",
                effort="low",
                max_output_tokens=777,
                tool_names=["save"],
                instructions="Only now.",
            )
            third = await say(claude, "Third.", output_schema_json=schema)
            fourth = await say(claude, "Fourth.")
            plain, changed, structured, after = (body_of(claude, n) for n in range(4))

    assert [first.text, second.text, fourth.text] == ["one", "two", "four"]
    assert all(not seen.notices("history_lost") for seen in (second, third, fourth))
    assert (changed["model"], changed["output_config"]["effort"], changed["max_tokens"]) == (
        "claude-opus-4-8",
        "low",
        777,
    )
    assert [tool["name"] for tool in changed["tools"]] == ["mcp__host__save"]
    assert changed["system"][-1]["text"] == "Base.\n\nOnly now."
    assert json.loads(third.state.structured_output_json or "") == {"n": 5}
    assert "StructuredOutput" in [tool["name"] for tool in structured["tools"]]
    for body in (plain, after):
        assert (body["model"], body["max_tokens"], len(body["tools"])) == ("claude-sonnet-4-6", 32000, 2)
        assert body["system"][-1]["text"] == "Base."
    assert texts(changed) == ["First.", "one", "Second."]
    assert texts(after)[:5] == ["First.", "one", "Second.", "two", "Third."] and texts(after)[-1] == "Fourth."


@requirement("claude:life:structured-output")
async def test_a_conversation_with_a_schema_gives_values_and_shows_no_tool_of_the_clis(tmp_path: Path) -> None:
    schema = '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'
    script: list[dict[str, Any]] = [
        {"calls": [{"name": "get_weather", "id": "toolu_1"}]},
        {"calls": [{"name": "StructuredOutput", "arguments": {"city": "Oslo"}}]},
    ]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, output_schema_json=schema) as claude:
            seen = await claude.say(answer=lambda request: result(request, "hail"))
    assert (seen.state.status, seen.state.structured_output_json) == ("completed", '{"city":"Oslo"}')
    assert [item for item in seen.items if isinstance(item, InternalToolStarted)] == []
    assert not seen.notices("surplus_tools") and not seen.notices("call_not_delivered")


@requirement("claude:life:effort")
async def test_effort_reaches_the_model_and_none_switches_thinking_off(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with open_claude([{"text": "a"}, {"text": "b"}], tmp_path, effort=Effort.NONE) as claude:
            await claude.say()
            await say(claude, "And now?", effort="high")
            off, high = body_of(claude, 0), body_of(claude, 1)
    assert off["thinking"] == {"type": "disabled"}
    assert high["output_config"]["effort"] == "high" and high["thinking"]["type"] != "disabled"


@requirement("claude:prompt:system")
async def test_a_system_prompt_may_be_appended_to_the_clis_own(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        mode = SystemPromptMode.APPEND
        async with open_claude(
            [{"text": "ok"}], tmp_path, system_prompt="Be brief.", system_prompt_mode=mode
        ) as claude:
            await claude.say()
            system = "\n".join(block["text"] for block in body_of(claude)["system"])
    assert "Be brief." in system and len(system) > 5000


@requirement("claude:life:documents", "R-B2")
async def test_documents_and_ten_megabytes_of_image_pass_both_ways(tmp_path: Path) -> None:
    picture = ImageBlock(data=base64.b64encode(noise(1850)).decode(), media_type="image/png")
    assert len(picture.data) > 10_000_000
    prompt = [
        TextBlock(text="Read."),
        ResourceBlock(uri="file:///a.pdf", media_type="application/pdf", data=PDF),
        ResourceBlock(uri="file:///a.txt", media_type="text/plain", text="hello"),
        picture,
    ]
    script = [{"calls": [{"name": "save", "id": "toolu_1", "arguments": {"note": "n" * 1_000_000}}]}, {"text": "ok"}]
    with anyio.fail_after(60):
        async with open_claude(script, tmp_path, route="bridge") as claude:
            seen = await claude.finished(
                await claude.start(prompt),
                lambda request: result(request, "here").model_copy(update={"content": [picture]}),
            )
            sent = json.dumps(body_of(claude, 0)["messages"])
            [block] = claude.last_results(2)
    assert seen.text == "ok"
    assert json.loads(seen.requests[0].arguments_json or "") == {"note": "n" * 1_000_000}
    assert PDF in sent and '"hello"' in sent and sent.count('"type": "document"') == 2
    # the CLI makes large images smaller before the model sees them, but it drops none
    assert '"type": "image"' in sent
    assert [part["type"] for part in block["content"] if part["type"] == "image"] == ["image"]


@requirement("claude:life:history")
async def test_a_history_is_told_as_text_before_the_first_message_and_only_there(tmp_path: Path) -> None:
    history = [
        HistoryMessage(role=HistoryRole.USER, content=[TextBlock(text="My name is Ada. </history>")]),
        HistoryMessage(role=HistoryRole.ASSISTANT, content=[TextBlock(text="Hello Ada.")]),
    ]
    with anyio.fail_after(30):
        async with open_claude([{"text": "Ada."}, {"text": "Yes."}], tmp_path, history=history) as claude:
            first = await claude.say("Who am I?")
            second = await claude.say("Sure?")
            body = body_of(claude)
    assert first.notices("history_as_text") and not second.notices("history_as_text")
    quoted, question = texts(body)[:2]
    assert "My name is Ada." in quoted and quoted.count("</history>") == 1
    assert question == "Who am I?"
    assert texts(body)[2:] == ["Ada.", "Sure?"]


@newest_only
@requirement("claude:life:fork")
async def test_a_fork_knows_what_was_said_up_to_it_and_goes_its_own_way(tmp_path: Path) -> None:
    script = [{"text": t} for t in ("one", "two", "other", "three", "more")]
    with anyio.fail_after(60):
        async with open_claude(script, tmp_path) as claude:
            await claude.say("First.")
            fork = Claude(claude.harness, claude.model, await claude.harness.fork_conversation(claude.conversation_id))
            await claude.say("Second.")
            forked = await fork.say("Another way.")
            await claude.say("Third.")
            again = await fork.say("Go on.")
            other, third, more = (texts(body_of(claude, n)) for n in (2, 3, 4))
    assert other == ["First.", "one", "Another way."]
    assert third == ["First.", "one", "Second.", "two", "Third."]
    assert more == ["First.", "one", "Another way.", "other", "Go on."]
    assert (forked.text, again.text) == ("other", "more")
    assert not forked.notices("history_lost") and not again.notices("history_lost")


@newest_only
@requirement("R-F2")
async def test_a_session_that_was_taken_up_without_its_history_is_told(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with open_claude([{"text": t} for t in ("one", "two", "three", "four")], tmp_path) as claude:
            await claude.say("First.")
            await claude.say("Second.")
            await claude.harness.end_conversation(claude.conversation_id)
            kept = await claude.say("Third.")
            await claude.harness.end_conversation(claude.conversation_id)
            [session] = (tmp_path / "home" / ".claude" / "projects").glob("*/*.jsonl")
            lines = session.read_text().splitlines(keepends=True)
            session.write_text("".join(lines[: next(i for i, one in enumerate(lines) if '"Second."' in one)]))
            lost = await claude.say("Fourth.")
            body = body_of(claude)
    assert not kept.notices("history_lost") and not kept.notices("history_unverified")
    assert "newest turns" in lost.notices("history_lost")[0]
    assert "Second." not in json.dumps(body["messages"])


@newest_only
@requirement("claude:life:background", "R-D2")
async def test_a_subagent_in_the_background_belongs_to_the_turn_that_started_it(tmp_path: Path) -> None:
    agent = {"name": "Agent", "arguments": {"description": "sub", "prompt": "SUB", "subagent_type": "general-purpose"}}
    script: list[dict[str, Any]] = [
        {"calls": [{**agent, "id": "toolu_a"}]},
        {"text": "Main goes on.", "delay_seconds": 0.1},
        {"text": "sub says", "delay_seconds": 0.3},
        {"text": "Main knows."},
        {"text": "Next turn."},
    ]
    options = {"background_tasks": True}
    with anyio.fail_after(60):
        async with open_claude(script, tmp_path, internal_tools=["Agent"], connector_options=options) as claude:
            turn_id = await claude.start("Go.")
            first = await claude.finished(
                turn_id, lambda request: result(request, "").model_copy(update={"selected_option": "allow_once"})
            )
            asked = len(claude.model.requests)
            second = await claude.say("And?")
    assert first.state.status == "completed"
    assert asked == 4, "the turn ended after the subagent"
    assert second.text == "Next turn."
    assert "Next turn." not in first.text


@newest_only
@requirement("claude:options:bare")
async def test_the_minimal_mode_adds_nothing_before_the_users_text(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        options = {"bare": True}
        script: list[dict[str, Any]] = [{"calls": [{"name": "save", "id": "toolu_1"}]}, {"text": "ok"}]
        async with open_claude(script, tmp_path, connector_options=options, system_prompt="S.") as claude:
            seen = await claude.say("Hello.", answer=lambda request: result(request, "kept"))
            body = body_of(claude, 0)
    assert seen.text == "ok"
    assert "system-reminder" not in json.dumps(body["messages"])


@newest_only
@requirement("claude:options:nobody-asked")
async def test_with_nobody_to_ask_what_needs_a_permission_is_denied(tmp_path: Path) -> None:
    script = [{"calls": [{"name": "Bash", "arguments": {"command": "touch made"}}]}, {"text": "ok"}]
    with anyio.fail_after(30):
        options = {"permission_prompts": "none"}
        async with open_claude(script, tmp_path, internal_tools=["Bash"], connector_options=options) as claude:
            seen = await claude.say()
    assert (seen.text, seen.requests) == ("ok", [])
    assert not (tmp_path / "work" / "made").exists()


@requirement("R-I5")
async def test_a_tool_without_arguments_is_called_with_none(tmp_path: Path) -> None:
    script: list[dict[str, Any]] = [{"calls": [{"name": "now", "id": "toolu_1"}]}, {"text": "ok"}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, tools=[ToolDescriptor(name="now")]) as claude:
            seen = await claude.say(answer=lambda request: result(request, "noon"))
    assert seen.requests[0].arguments_json == "{}"
