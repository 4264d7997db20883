"""Context safety: what leaves the prompt, in which order, and what never does."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract_tests.core.scripted_chat_model import (
    ScriptedChatModel,
    answered,
    calls,
    notices,
    says,
    talk_with,
)
from contract_tests.core.test_model_loop import results_in
from contract_tests.requirements import requirement
from harness.contract import HostRequest, HostResponse, TextBlock, TurnStatus
from harness.errors import ContextOverflow
from harness.model_loop import AssistantMessage, CallMade, ModelAnswer, ModelRequest, Said, ToolMessage, UserMessage
from harness.model_loop.compaction import further_cuts
from harness.model_loop.cuts import Cuts
from harness.model_loop.history import Call, Entry, ModelSaid, Result, UserSaid
from harness.model_loop.view import cut_text, messages_of, size_of
from harness.store.memory import MemoryStore


def texts(request: ModelRequest) -> list[str]:
    return [
        "".join(getattr(block, "text", "") for block in message.content)
        for message in request.messages
        if isinstance(message, UserMessage)
    ]


def big(request: HostRequest) -> HostResponse:
    return answered(request, f"{request.call_id} " + "x" * 2000)


def rounds(count: int) -> list[ModelAnswer]:
    return [calls((f"c{i}", "look", f'{{"page":{i}}}')) for i in range(count)]


@requirement("model-loop:compaction")
async def test_old_results_become_their_calls_name_before_rounds_are_left_out() -> None:
    model = ScriptedChatModel(*rounds(8), says("done"))
    options = '{"context_window": 4000, "loop_guard": false}'
    async with talk_with(model, connector_options_json=options) as talk:
        state = await talk.run("read it all", tool=big)
    assert state.status == TurnStatus.COMPLETED
    assert "results of old calls were replaced" in notices(state, "compacted")[0]
    assert all(size_of(request.messages) < 4000 for request in model.requests)
    last = results_in(model)
    assert ("c0", '[The result of look({"page":0}) was removed to save space.]', False) in last
    assert [text.startswith(call_id) for call_id, text, _ in last[-2:]] == [True, True]
    assert texts(model.requests[-1])[0] == "read it all"
    model.check_pairs()


@requirement("model-loop:compaction")
async def test_old_turns_are_left_out_and_their_tools_named() -> None:
    model = ScriptedChatModel(*rounds(3), says("x" * 6000), says("y" * 6000), says("end"))
    async with talk_with(model, connector_options_json='{"context_window": 3000}') as talk:
        await talk.run("first")
        await talk.run("second")
        state = await talk.run("third")
    assert "old messages and rounds were left out" in notices(state, "compacted")[0]
    first, *_, last = texts(model.requests[-1])
    assert first.startswith("[Earlier messages were removed") and 'look({"page":0})' in first
    assert last == "third"
    model.check_pairs()


@requirement("model-loop:compaction")
async def test_what_is_left_out_can_be_summarised() -> None:
    def reply(request: ModelRequest) -> ModelAnswer:
        is_wish = "Summarise the conversation" in texts(request)[-1]
        return says("SUMMARY", usage=(7, 3)) if is_wish else says("z" * 8000)

    model = ScriptedChatModel(*[reply] * 9)
    async with talk_with(model, connector_options_json='{"context_window": 4000, "compaction": "summarise"}') as talk:
        for text in ("one", "two", "three"):
            state = await talk.run(text)
    assert "were summarised" in notices(state, "compacted")[0]
    assert texts(model.requests[-1])[0] == "[Earlier messages were replaced by this summary.]\nSUMMARY"
    assert state.usage is not None and state.usage.model_calls == 2 and state.usage.input_tokens == 7


@requirement("model-loop:compaction")
async def test_a_prompt_that_cannot_be_made_to_fit_fails_before_it_is_sent() -> None:
    model = ScriptedChatModel()
    async with talk_with(model, connector_options_json='{"context_window": 500}') as talk:
        state = await talk.run("w" * 9000)
    assert state.error is not None and state.error.code == "context_overflow" and "500" in state.error.message
    assert model.requests == []


@requirement("model-loop:overflow")
@pytest.mark.parametrize("options", ["{}", '{"context_window": 100000}'])
async def test_a_refused_prompt_is_compacted_once_and_sent_again(options: str) -> None:
    model = ScriptedChatModel(*rounds(5), ContextOverflow("too long"), says("done"))
    async with talk_with(model, connector_options_json=options) as talk:
        state = await talk.run(tool=big)
        assert state.status == TurnStatus.COMPLETED
        assert len(notices(state, "compacted")) == 1
        assert size_of(model.requests[-1].messages) < size_of(model.requests[-2].messages) * 0.6
        model.steps += [ContextOverflow("too long")] * 2
        state = await talk.run("again")
        assert state.error is not None and state.error.code == "context_overflow"
    model.check_pairs()


@requirement("model-loop:results:cut")
async def test_a_long_result_keeps_head_and_tail_in_the_prompt_and_all_on_record() -> None:
    text = "".join(f"{i:05d}," for i in range(5000))
    model = ScriptedChatModel(calls(("c1", "look", "{}")), says("done"))
    store = MemoryStore()
    async with talk_with(model, store=store, connector_options_json='{"max_result_chars": 300}') as talk:
        state = await talk.run(tool=lambda request: answered(request, text))
        assert "'c1' has 30000 characters" in notices(state, "result_cut")[0]
        kept = str(await store.entries(talk.conversation_id))
        ((_, seen, _),) = results_in(model)
    assert seen.startswith(text[:200]) and seen.endswith(text[-100:])
    assert "29700 of 30000 characters left out" in seen
    assert hashlib.sha256(text.encode()).hexdigest() and text in kept


def test_cutting_is_exact_about_what_is_missing() -> None:
    assert cut_text("abc", 3) == "abc"
    cut = cut_text("a" * 50 + "b" * 50, 30)
    assert cut.count("a") - "characters".count("a") >= 20 and "70 of 100" in cut


entries_strategy = st.lists(
    st.tuples(st.sampled_from(["user", "text", "round"]), st.integers(0, 3000), st.integers(1, 3)),
    min_size=1,
    max_size=14,
)


def build(plan: list[tuple[str, int, int]]) -> list[Entry]:
    entries: list[Entry] = [UserSaid((TextBlock(text="begin"),))]
    for number, (kind, size, count) in enumerate(plan):
        if kind == "user":
            entries.append(UserSaid((TextBlock(text="u" * size),)))
        elif kind == "text":
            entries.append(ModelSaid(said=(Said("t" * size),)))
        else:
            made = [CallMade(f"k{number}.{i}", "look", "{}") for i in range(count)]
            said = ModelSaid(calls=tuple(Call(one) for one in made))
            said.results.update({one.call_id: Result((TextBlock(text="r" * size),)) for one in made})
            entries.append(said)
    return entries


@requirement("model-loop:compaction")
@given(entries_strategy, st.lists(st.integers(20, 4000), min_size=1, max_size=3))
def test_cuts_only_grow_never_part_a_pair_and_keep_the_newest(
    plan: list[tuple[str, int, int]], targets: list[int]
) -> None:
    entries = build(plan)
    starts = max(i for i, entry in enumerate(entries) if isinstance(entry, UserSaid))

    def measure(cuts: Cuts) -> int:
        return size_of(messages_of(entries, cuts))

    cuts = Cuts()
    for target in sorted(targets, reverse=True):
        after = further_cuts(entries, cuts, measure, target, starts)
        assert after.drop_before >= cuts.drop_before and after.stub_before >= cuts.stub_before
        cuts = after
    view = messages_of(entries, cuts)
    for message, following in zip(view, [*view[1:], None], strict=True):
        made = [call.call_id for call in message.calls] if isinstance(message, AssistantMessage) else []
        if made:
            assert isinstance(following, ToolMessage)
            assert [one.call_id for one in following.results] == made
    assert any(isinstance(m, UserMessage) and m.content == entries[starts].content for m in view)  # type: ignore[union-attr]
    newest = [entry for entry in entries if isinstance(entry, ModelSaid)][-1:]
    for entry in newest:
        for call in entry.calls:
            found = [r for m in view if isinstance(m, ToolMessage) for r in m.results if r.call_id == call.made.call_id]
            assert len(found) == 1 and "was removed" not in str(found[0].content)
