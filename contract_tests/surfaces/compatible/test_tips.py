"""Where a conversation stands: the same for every way to cut it, another for every other conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from contract_tests.requirements import requirement
from harness.contract import ContentBlock, HistoryMessage, HistoryRole, ImageBlock, TextBlock, ToolCall, ToolResult
from harness.surfaces.compatible.tips import START, fingerprint_of, merged, split, tip

words = st.text("ab \né", min_size=1, max_size=4)
Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]
ids = st.sampled_from(["a", "b", "c"])
arguments = st.dictionaries(words, st.integers() | words | st.booleans(), max_size=2)
images = st.builds(ImageBlock, data=st.sampled_from(["AAAA", "BBBB"]), media_type=st.just("image/png"))


@st.composite
def calls(draw: st.DrawFn) -> ToolCall:
    return ToolCall(call_id=draw(ids), tool_name=draw(ids), arguments_json=json.dumps(draw(arguments)))


@st.composite
def user_messages(draw: st.DrawFn) -> HistoryMessage:
    results = draw(
        st.lists(
            st.builds(ToolResult, call_id=ids, content=st.lists(st.builds(TextBlock, text=words), max_size=2)),
            max_size=2,
        )
    )
    content: list[ContentBlock] = draw(st.lists(st.builds(TextBlock, text=words) | images, max_size=2))
    return HistoryMessage(role=HistoryRole.USER, content=content, tool_results=results)


@st.composite
def assistant_messages(draw: st.DrawFn) -> HistoryMessage:
    content: list[ContentBlock] = [*draw(st.lists(st.builds(TextBlock, text=words), max_size=2))]
    return HistoryMessage(role=HistoryRole.ASSISTANT, content=content, tool_calls=draw(st.lists(calls(), max_size=2)))


@st.composite
def conversations(draw: st.DrawFn) -> list[HistoryMessage]:
    """User and assistant in turn, as they were said."""
    exchanges = draw(st.lists(st.tuples(user_messages(), assistant_messages()), min_size=1, max_size=2))
    return [message for exchange in exchanges for message in exchange]


def cut_anew(draw: Draw, messages: Sequence[HistoryMessage]) -> list[HistoryMessage]:
    """The same words in other messages and blocks, and arguments in other letters."""
    return [piece for message in messages for piece in _pieces(draw, message)]


def _pieces(draw: Draw, message: HistoryMessage) -> list[HistoryMessage]:
    whole = [HistoryMessage(role=message.role, tool_results=[result]) for result in message.tool_results]
    whole += [HistoryMessage(role=message.role, content=[block]) for block in message.content]
    whole += [HistoryMessage(role=message.role, tool_calls=[_rewritten(call)]) for call in message.tool_calls]
    if not whole or draw(st.booleans()):
        return [message]
    if draw(st.booleans()):
        whole.append(
            HistoryMessage(role=message.role, content=[TextBlock(text=draw(st.sampled_from(["", " ", "\n"])))])
        )
    return whole


def _rewritten(call: ToolCall) -> ToolCall:
    members = list(json.loads(call.arguments_json).items())
    text = json.dumps(dict(reversed(members)), indent=2, ensure_ascii=False)
    return call.model_copy(update={"arguments_json": text})


@requirement("compatible:tip")
@given(st.data(), conversations())
def test_a_history_stands_at_the_same_point_however_it_is_cut(data: st.DataObject, said: list[HistoryMessage]) -> None:
    assert tip(cut_anew(data.draw, said)) == tip(said)


@requirement("compatible:tip")
@given(conversations(), conversations())
def test_different_conversations_stand_at_different_points(
    one: list[HistoryMessage], other: list[HistoryMessage]
) -> None:
    assert (tip(one) == tip(other)) == (_meaning(one) == _meaning(other))


@requirement("compatible:tip")
@given(st.data(), conversations())
def test_an_edited_or_shortened_history_stands_elsewhere(data: st.DataObject, said: list[HistoryMessage]) -> None:
    number = data.draw(st.integers(0, len(said) - 1))
    edited = said[number].model_copy(update={"content": [*said[number].content, TextBlock(text="and more")]})

    assert tip([*said[:number], edited, *said[number + 1 :]]) != tip(said)
    assert tip(said[:number]) != tip(said)


@requirement("compatible:tip")
@given(conversations(), conversations())
def test_a_tip_goes_on_from_a_tip(first: list[HistoryMessage], then: list[HistoryMessage]) -> None:
    assert tip(then, after=tip(first)) == tip([*first, *then])
    assert tip([]) == START


@requirement("compatible:tip")
@given(conversations(), user_messages(), user_messages())
def test_what_follows_the_assistants_last_word_is_new(
    said: list[HistoryMessage], one: HistoryMessage, other: HistoryMessage
) -> None:
    history, new = split([*said, one, other])

    assert history == merged(said)
    assert new == merged([one, other])[0]
    assert split(said) == (merged(said), None)


def test_requests_are_equal_whatever_the_order_of_members_and_the_way_of_reading() -> None:
    one = {"model": "fake", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    other = {"messages": [{"content": "hi", "role": "user"}], "model": "fake"}

    assert fingerprint_of(one, ["stream"]) == fingerprint_of(other, ["stream"])
    assert fingerprint_of(one, ["stream"]) != fingerprint_of({**other, "user": "somebody"}, ["stream"])


def _meaning(said: Sequence[HistoryMessage]) -> list[object]:
    return [
        (
            message.role,
            _text(message.content).strip(),
            [block for block in message.content if not isinstance(block, TextBlock)],
            [(call.call_id, call.tool_name, json.loads(call.arguments_json)) for call in message.tool_calls],
            [(result.call_id, _text(result.content).strip()) for result in message.tool_results],
        )
        for message in said
    ]


def _text(content: Sequence[object]) -> str:
    return "".join(block.text for block in content if isinstance(block, TextBlock))
