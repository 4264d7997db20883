"""The scripted peer, seen through `ConversationalLLM`: it does what its script says, in both styles of the port."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from connectors.fake import FakeConnector
from contract_tests.llm_suite import TOOLS, Peer, begin, is_over, is_waiting, results, say, texts, to_end, until
from contract_tests.requirements import requirement
from harness.contract import (
    ConversationOptions,
    HostResponse,
    ImageBlock,
    InternalToolFinished,
    InternalToolStarted,
    Limits,
    Message,
    OutputItem,
    PolicyRule,
    RequestOpened,
    RequestPolicy,
    RequestResolved,
    TextBlock,
    ToolSourceDescriptor,
    TurnOptions,
    as_content,
)
from harness.errors import ConfigError, Forbidden, HarnessError, InvalidArgument, from_code
from harness.local import LocalHarness
from harness.registry import Registry
from harness.settings import Rights

STYLES = ("emit", "ask")


@asynccontextmanager
async def open_fake(script: object = None, peer: Peer | None = None) -> AsyncGenerator[LocalHarness]:
    fake = FakeConnector(script, on_seen=peer.note if peer else None)
    with anyio.fail_after(5):
        async with LocalHarness(Registry({"fake": fake}), default_connector="fake") as llm:
            yield llm


async def play(script: object, **options: Any) -> list[OutputItem]:
    """One turn of the script from its beginning to its end, tool calls answered with "done"."""
    async with open_fake(script) as llm:
        return await to_end(llm, await begin(llm, **options))


def kinds(items: list[OutputItem]) -> list[str]:
    return [item.kind for item in items]


def ended(items: list[OutputItem]) -> Any:
    last: Any = items[-1]
    return last


# echo


@requirement("fake:echo")
async def test_without_a_script_it_says_what_it_was_told() -> None:
    items = await play(None, message="Hello there,\n  you!")
    assert texts(items) == "Hello there,\n  you!"
    assert len([item for item in items if item.kind == "text_delta"]) == 3
    assert ended(items).stop_reason == "end_turn"


@requirement("fake:echo")
async def test_it_makes_the_calls_it_is_told_to_make_in_one_round() -> None:
    async with open_fake() as llm:
        ids = await begin(llm, 'call weather {"city": "Oslo"}\ncall clock')
        state, _ = await until(llm, ids, lambda state: len(state.pending_requests) == 2)
        first, second = state.pending_requests
        await llm.submit_responses(*ids, results([second.request_id], "noon"))
        await llm.submit_responses(*ids, results([first.request_id], "rain"))
        items = await to_end(llm, ids)
    assert [(one.tool_name, one.arguments_json) for one in (first, second)] == [
        ("weather", '{"city": "Oslo"}'),
        ("clock", "{}"),
    ]
    assert texts(items) == "weather: rain\nclock: noon"


@requirement("fake:echo")
@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("call unknown {}", TurnOptions()),
        ("call weather {oops", TurnOptions()),
        ("call weather {}", TurnOptions(tool_names=["clock"])),
        ("call weather {}", TurnOptions.model_validate({"tool_mode": "none"})),
    ],
)
async def test_it_calls_only_what_it_may(message: str, options: TurnOptions) -> None:
    async with open_fake() as llm:
        conversation_id = await llm.begin_conversation(ConversationOptions(tools=TOOLS))
        turn_id = await say(llm, conversation_id, message, options)
        assert texts(await to_end(llm, (conversation_id, turn_id))) == message


@requirement("fake:echo")
async def test_it_echoes_pictures_and_structure() -> None:
    picture = ImageBlock(data="AAAA", media_type="image/png")
    async with open_fake() as llm:
        conversation_id = await llm.begin_conversation(ConversationOptions())
        content = [TextBlock(text='{"a": 1}'), picture]
        options = TurnOptions(output_schema_json='{"type": "object"}')
        turn_id = await llm.submit_user_message(conversation_id, content, options)
        state, items = await until(llm, (conversation_id, turn_id), is_over)
    assert [item.content for item in items if isinstance(item, Message)] == [content]
    assert json.loads(state.structured_output_json or "") == {"a": 1}


# requests, in both styles


@requirement("fake:requests:all-kinds")
@pytest.mark.parametrize("style", STYLES)
async def test_a_round_of_parallel_calls_with_repeated_ids_is_answered_call_by_call(style: str) -> None:
    call = {"name": "clock", "id": "same", "arguments": {"x": 1}}
    script = {"style": style, "turns": [[{"calls": [call, call, {"name": "clock", "order": 0}]}, {"text": "ok"}]]}
    peer = Peer()
    async with open_fake(script, peer) as llm:
        ids = await begin(llm)
        state, _ = await until(llm, ids, lambda state: len(state.pending_requests) == 3)
        for number, request in enumerate(reversed(state.pending_requests)):
            await llm.submit_responses(*ids, results([request.request_id], str(number)))
        items = await to_end(llm, ids)
    waiting = state.pending_requests
    assert [one.call_id for one in waiting] == ["call_1_1_3", "same", "same"]
    assert len({one.request_id for one in waiting}) == len({one.peer_request_id for one in waiting}) == 3
    assert [one.request_id for one in peer.answers] == [one.request_id for one in reversed(waiting)]
    assert texts(items) == "ok"


@requirement("fake:requests:all-kinds")
@pytest.mark.parametrize("style", STYLES)
async def test_approvals_and_questions_arrive_as_they_were_scripted(style: str) -> None:
    script = {
        "style": style,
        "turns": [
            [
                {
                    "approval": {
                        "tool": "Bash",
                        "call_id": "b1",
                        "arguments": {"command": "ls"},
                        "title": "List files",
                        "options": [{"id": "y", "kind": "allow_once"}, {"id": "n", "kind": "deny"}],
                    }
                },
                {"internal_tool": {"name": "Bash", "call_id": "b1", "result_text": "a.txt"}},
                {"question": {"questions": [{"id": "color", "text": "Which?", "allow_free_text": True}]}},
                {"message": "{{results.b1}} and {{results.p1_3_1}}", "phase": "final"},
            ]
        ],
    }
    async with open_fake(script) as llm:
        ids = await begin(llm)
        state, _ = await until(llm, ids, is_waiting)
        [approval] = state.pending_requests
        await llm.submit_responses(*ids, [HostResponse(request_id=approval.request_id, selected_option="allow_once")])
        state, _ = await until(llm, ids, is_waiting, state.sequence_no + 1)
        [question] = state.pending_requests
        answers: Any = [{"question_id": "color", "text": "blue"}]
        await llm.submit_responses(*ids, [HostResponse(request_id=question.request_id, answers=answers)])
        items = await to_end(llm, ids)
    assert (approval.kind, approval.call_id, approval.title, approval.arguments_json) == (
        "approval",
        "b1",
        "List files",
        '{"command":"ls"}',
    )
    assert [option.id for option in approval.options] == ["y", "n"]
    assert (question.kind, question.questions[0].text) == ("user_question", "Which?")
    finished = [item for item in items if isinstance(item, InternalToolFinished)]
    assert [(one.result, one.result_text) for one in finished] == [("ok", "a.txt")]
    [message] = [item for item in items if isinstance(item, Message)]
    assert (message.content, message.phase) == (as_content("allow_once and blue"), "final")


@requirement("fake:requests:all-kinds")
@pytest.mark.parametrize(("option", "status"), [("deny", "completed"), ("deny_and_interrupt", "cancelled")])
async def test_a_denied_internal_tool_is_refused_and_a_hard_denial_ends_the_turn(option: str, status: str) -> None:
    options = [{"id": kind, "kind": kind} for kind in ("allow_once", "deny", "deny_and_interrupt")]
    script = [
        [
            {"approval": {"tool": "Bash", "call_id": "b1", "options": options}},
            {"internal_tool": {"name": "Bash", "call_id": "b1", "result_text": "never"}},
            {"text": "went on"},
        ]
    ]
    async with open_fake(script) as llm:
        ids = await begin(llm)
        state, _ = await until(llm, ids, is_waiting)
        [approval] = state.pending_requests
        await llm.submit_responses(*ids, [HostResponse(request_id=approval.request_id, selected_option=option)])
        state, items = await until(llm, ids, is_over)
    assert state.status == status
    refused = [(item.result, item.result_text) for item in items if isinstance(item, InternalToolFinished)]
    assert refused == ([("refused", None)] if status == "completed" else [])


@requirement("fake:requests:withdrawn")
@pytest.mark.parametrize("style", STYLES)
async def test_a_withdrawn_request_leaves_the_list_and_a_late_answer_disturbs_nobody(style: str) -> None:
    gate = anyio.Event()
    script = {
        "style": style,
        "turns": [
            [
                {"calls": [{"name": "clock", "id": "a"}, {"name": "clock", "id": "b"}], "wait": False},
                {"until": gate},
                {"withdraw": "a"},
                {"wait": "all"},
                {"text": "{{results.a}} {{results.b}}"},
            ]
        ],
    }
    async with open_fake(script) as llm:
        ids = await begin(llm)
        await until(llm, ids, lambda state: len(state.pending_requests) == 2)
        gate.set()
        await until(llm, ids, lambda state: len(state.pending_requests) == 1)
        await llm.submit_responses(*ids, results(["a", "b"], "noon"))
        items = await to_end(llm, ids)
    outcomes = [
        (item.request_id, item.outcome, item.answered_by) for item in items if isinstance(item, RequestResolved)
    ]
    assert outcomes == [("a", "withdrawn", "peer"), ("b", "answered", "host")]
    assert texts(items) == "(no result for 'a') noon"


@requirement("fake:requests:withdrawn")
@pytest.mark.parametrize("style", STYLES)
async def test_what_waits_when_the_peer_ends_is_withdrawn(style: str) -> None:
    script = {
        "style": style,
        "turns": [[{"calls": [{"name": "clock", "id": "a"}], "wait": False}, {"text": "."}, {"end": "end_turn"}]],
    }
    async with open_fake(script) as llm:
        _, items = await until(llm, await begin(llm), is_over)
    assert [item.outcome for item in items if isinstance(item, RequestResolved)] == ["withdrawn"]


# what else a peer does


@requirement("fake:script:every-step")
async def test_every_other_kind_of_item_can_be_scripted() -> None:
    items = await play(
        [
            [
                {"thinking": ["hm", "m"]},
                {"text": "half", "item_id": "m1"},
                {"discard": "m1"},
                {"text": ["who", "le"], "item_id": "m2"},
                {"internal_tool": {"name": "Grep", "call_id": "g", "arguments": {"q": "x"}, "delay_seconds": 0}},
                {"internal_tool": {"name": "Task", "call_id": "t", "result": None}},
                {"plan": [{"text": "first", "status": "in_progress"}]},
                {"usage": {"input_tokens": 5, "cost_usd": 0.5}},
                {"notice": {"code": "retry", "text": "again"}},
                {"raw": {"text": "{}"}},
                {"delay_seconds": 0},
                {"end": "max_tokens", "structured_output": {"a": None}},
                {"text": "a late event"},
            ]
        ],
        output_detail="raw",
    )
    assert kinds(items) == [
        *["thinking_delta"] * 2,
        "text_delta",
        "item_discarded",
        *["text_delta"] * 2,
        "internal_tool_started",
        "internal_tool_finished",
        "internal_tool_started",
        "plan",
        "usage",
        "notice",
        "raw",
        "turn_ended",
    ]
    assert (ended(items).status, ended(items).stop_reason) == ("completed", "max_tokens")


async def test_raw_traffic_is_shown_only_where_it_was_asked_for() -> None:
    assert "raw" not in kinds(await play([[{"raw": {"text": "{}"}}, {"text": "a"}]]))


@requirement("fake:script:every-step")
@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turns", "budget", "refusal"])
async def test_a_turn_ends_with_any_stop_reason(reason: str) -> None:
    last = ended(await play([[{"end": reason}]]))
    assert (last.status, last.stop_reason) == ("completed", reason)


@requirement("fake:script:every-step")
@pytest.mark.parametrize(
    "code",
    ["provider_error", "peer_protocol_error", "context_overflow", "loop_guard", "connector_unavailable", "peer_lost"],
)
async def test_a_turn_fails_with_any_error(code: str) -> None:
    last = ended(await play([[{"text": "a"}, {"error": {"code": code, "message": "m", "detail": {"status": 529}}}]]))
    assert (last.status, last.error.code, last.error.message) == ("failed", code, "m")
    assert json.loads(last.error.detail_json)["status"] == 529
    assert last.error.retryable == from_code(code, "").retryable


@requirement("fake:peer:dies")
async def test_a_dead_peer_fails_the_turn_and_the_next_one_runs_in_a_new_session() -> None:
    peer = Peer()
    script = [
        [{"calls": [{"name": "clock", "id": "c"}], "wait": False}, {"die": {"exit_code": -9, "stderr": "killed"}}],
        [{"text": "alive"}, {"die": "later"}],
        [{"text": "again"}],
    ]
    async with open_fake(script, peer) as llm:
        ids = await begin(llm)
        state, items = await until(llm, ids, is_over)
        second = await to_end(llm, (ids[0], await say(llm, ids[0])))
        third = await to_end(llm, (ids[0], await say(llm, ids[0])))
    assert [item.outcome for item in items if isinstance(item, RequestResolved)] == ["lost"]
    assert state.error is not None
    detail = json.loads(state.error.detail_json or "")
    assert (state.error.code, detail["exit_code"], detail["stderr_tail"]) == ("peer_lost", -9, "killed")
    assert [call["call_id"] for call in detail["open_requests"]] == ["c"]
    assert (texts(second), texts(third)) == ("alive", "again")
    assert [one.what for one in peer.seen].count("opened") == 3


@requirement("fake:peer:ends-with-its-script")
async def test_a_message_past_the_end_of_the_script_is_an_error_that_says_so() -> None:
    async with open_fake([[{"text": "only"}]]) as llm:
        ids = await begin(llm)
        await to_end(llm, ids)
        last = ended(await to_end(llm, (ids[0], await say(llm, ids[0]))))
    assert last.error.code == "provider_error"
    assert "the script ends after 1 turn(s) and this is turn 2" in last.error.message


async def test_a_script_that_repeats_has_no_end_and_its_ids_stay_unique() -> None:
    async with open_fake({"repeat": True, "turns": [[{"calls": [{"name": "clock"}]}]]}) as llm:
        ids = await begin(llm)
        turns = [await to_end(llm, ids), await to_end(llm, (ids[0], await say(llm, ids[0])))]
    opened = [item.request.request_id for turn in turns for item in turn if isinstance(item, RequestOpened)]
    assert opened == ["call_1_1_1", "call_2_1_1"]


async def test_results_of_an_earlier_turn_can_be_quoted() -> None:
    async with open_fake([[{"calls": [{"name": "clock", "id": "c"}]}], [{"text": "{{results.c}}"}]]) as llm:
        ids = await begin(llm)
        await to_end(llm, ids, "noon")
        assert texts(await to_end(llm, (ids[0], await say(llm, ids[0])))) == "noon"


async def test_a_peer_stops_at_its_limit_of_model_calls() -> None:
    rounds = [{"calls": [{"name": "clock"}]}] * 5
    items = await play([rounds], limits=Limits(max_turns=2))
    assert kinds(items).count("request_opened") == 2
    assert ended(items).stop_reason == "max_turns"


# simulated delegation


@requirement("fake:delegation")
async def test_calls_of_a_delegated_source_are_run_by_the_peer_and_reported() -> None:
    calls = [
        {"name": "log", "id": "g1", "source": "git", "result": "3 commits", "arguments": {"n": 3}},
        {"name": "push", "id": "g2", "source": "git"},
        {"name": "clock", "id": "c1"},
    ]
    async with open_fake([[{"calls": calls}, {"text": "{{results.g1}}"}]]) as llm:
        conversation_id = await llm.begin_conversation(ConversationOptions(tools=TOOLS))
        source = ToolSourceDescriptor(name="git", kind="mcp_stdio", command="git-mcp", tool_names=["log"])
        await llm.delegate_tool_sources(conversation_id, [source])
        items = await to_end(llm, (conversation_id, await say(llm, conversation_id)))
    started = [item for item in items if isinstance(item, InternalToolStarted)]
    assert [(one.call_id, one.tool_name, one.source, one.arguments_json) for one in started] == [
        ("g1", "log", "git", '{"n":3}')
    ]
    assert [item.request.call_id for item in items if isinstance(item, RequestOpened)] == ["g2", "c1"]
    assert texts(items) == "3 commits"


@requirement("fake:delegation")
@pytest.mark.parametrize(
    ("policy", "outcome"),
    [
        ({"deny": [PolicyRule(tool="Ba*")], "allow": [PolicyRule(tool="Bash")]}, "refused"),
        ({"allow": [PolicyRule(tool="Bash")]}, "ok"),
        ({"allow": [PolicyRule.model_validate({"arguments": [{"name": "command", "pattern": "git *"}]})]}, "ok"),
        ({"allow": [PolicyRule.model_validate({"arguments": [{"name": "command", "pattern": "ls*"}]})]}, "asked"),
        ({"mode": "bypass", "ask": [PolicyRule(tool="Bash")]}, "asked"),
        ({"mode": "bypass"}, "ok"),
        ({"mode": "dont_ask"}, "refused"),
        ({"mode": "read_only"}, "refused"),
        ({}, "asked"),
    ],
)
async def test_a_delegated_policy_decides_what_it_covers_and_the_rest_is_asked(
    policy: dict[str, Any], outcome: str
) -> None:
    approval = {"tool": "Bash", "call_id": "b", "arguments": {"command": "git log"}}
    script = [[{"approval": approval}, {"internal_tool": {"name": "Bash", "call_id": "b"}}]]
    async with open_fake(script) as llm:
        conversation_id = await llm.begin_conversation(ConversationOptions())
        await llm.delegate_request_policy(conversation_id, RequestPolicy.model_validate(policy))
        ids = conversation_id, await say(llm, conversation_id)
        state, items = await until(llm, ids, lambda state: is_over(state) or is_waiting(state))
    results = [item.result for item in items if isinstance(item, InternalToolFinished)]
    assert ("asked" if state.status == "awaiting_host" else results[0]) == outcome


@requirement("fake:delegation")
async def test_a_policy_that_declines_questions_keeps_them_from_the_host() -> None:
    script = [[{"question": {"questions": [{"id": "q", "text": "?"}]}}, {"text": "went on"}]]
    async with open_fake(script) as llm:
        conversation_id = await llm.begin_conversation(ConversationOptions())
        await llm.delegate_request_policy(conversation_id, RequestPolicy(questions="decline"))
        items = await to_end(llm, (conversation_id, await say(llm, conversation_id)))
    assert kinds(items) == ["text_delta", "turn_ended"]


# scripts and options


@requirement("fake:options")
async def test_a_script_comes_from_a_file_or_from_the_options(tmp_path: Path) -> None:
    yaml_file, json_file = tmp_path / "s.yaml", tmp_path / "s.json"
    yaml_file.write_text("turns:\n- - text: [2026-01-02, ' yaml']\n")
    json_file.write_text('[[{"text": "json"}]]')
    said: list[str] = []
    for options in ({"script": str(yaml_file)}, {"script": str(json_file)}, {"steps": [{"text": "steps"}]}):
        said.append(texts(await play(None, connector_options_json=json.dumps(options))))
    assert said == ["2026-01-02 yaml", "json", "steps"]
    assert texts(await play(yaml_file)) == "2026-01-02 yaml"


@requirement("fake:options")
async def test_options_replace_what_the_script_says_of_itself() -> None:
    options = {"resume": "exact", "capabilities": {"streaming": "block"}, "turns": [[{"text": "a"}]]}
    asked = ConversationOptions(connector="fake:ask", connector_options_json=json.dumps(options))
    async with open_fake() as llm:
        capabilities = await llm.get_capabilities(asked)
    assert (capabilities.resume, capabilities.streaming) == ("exact", "block")


@requirement("fake:options")
async def test_capabilities_follow_from_the_script() -> None:
    steps = [{"internal_tool": {"name": "Bash", "call_id": "b"}}, {"usage": {"cost_usd": 1.0}}]
    async with open_fake([steps]) as llm:
        scripted = await llm.get_capabilities()
    async with open_fake() as llm:
        echo = await llm.get_capabilities()
    assert (scripted.internal_tools, scripted.reports_usage, scripted.reports_cost) == (["Bash"], True, True)
    assert (echo.internal_tools, echo.reports_usage, echo.reports_cost) == ([], True, False)
    assert set(echo.turn_options) == set(TurnOptions.model_fields) - {"client_key"}


@requirement("fake:options")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scirpt": "a"}, "connector option 'scirpt' of 'fake': Extra inputs"),
        ({"script": "a", "steps": []}, "connector options of 'fake': 'script' and 'steps' exclude each other"),
        ({"style": "shout"}, "connector option 'style' of 'fake'"),
    ],
)
async def test_options_that_are_not_understood_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    async with open_fake() as llm:
        with pytest.raises(InvalidArgument) as caught:
            await begin(llm, connector_options_json=json.dumps(options))
    assert message in caught.value.message


@requirement("fake:options")
async def test_a_caller_without_the_right_to_name_files_cannot_name_a_script() -> None:
    async with open_fake() as llm:
        guest = llm.for_owner("guest", Rights(programs=False))
        with pytest.raises(Forbidden, match="'script'"):
            await begin(guest, connector_options_json='{"script": "/etc/passwd"}')
        await to_end(guest, await begin(guest, connector_options_json='{"steps": [{"text": "a"}]}'))


@requirement("fake:script:precise-errors")
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ([[{"text": "a"}, {"txt": "b"}]], "turn 1, step 2: is no step: it needs one of calls, approval"),
        ([[{"calls": [{"name": "a"}, {}]}]], "turn 1, step 1, 'calls[1].name': is missing"),
        ([[{"text": "a", "colour": "red"}]], "turn 1, step 1, 'colour': unknown member"),
        ([[{"calls": [{"name": "a", "arguments": {"x": 1}, "arguments_json": "{}"}]}]], "exclude each other"),
        ({"turns": []}, "'turns'"),
        ({"turns": [[]], "capabilities": {"flying": True}}, "'capabilities': 'flying' is no capability"),
        ({"on_interrupt": [{"txt": 1}]}, "'on_interrupt[0]': is no step"),
        ("hello", "Input should be a valid dictionary"),
    ],
)
def test_a_script_that_cannot_be_used_is_named_with_turn_step_and_member(script: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FakeConnector(script)
    assert message in caught.value.message
    assert "\n" not in caught.value.message


@requirement("fake:script:precise-errors")
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", None, "no script '"),
        ("a.yaml", "- [", "is broken"),
        ("a.json", "[", "is broken"),
        ("a.yaml", "- - txt: 1", "turn 1, step 1"),
    ],
)
def test_a_script_file_that_cannot_be_used_is_named(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    file = tmp_path / name
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        FakeConnector(file)
    assert str(file) in caught.value.message
    assert message in caught.value.message


async def test_a_broken_script_of_a_conversation_is_refused_at_begin() -> None:
    async with open_fake() as llm:
        with pytest.raises(HarnessError, match="turn 1, step 1"):
            await begin(llm, connector_options_json='{"steps": [{"txt": 1}]}')
