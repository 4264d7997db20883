"""One turn read as replies: however the polls cut it, the same is said; and no reply pays for another."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from contract_tests.requirements import requirement
from harness.contract import (
    ItemDiscarded,
    Message,
    OutputItem,
    TextBlock,
    TextDelta,
    TurnState,
    TurnStatus,
    UsageInfo,
    add_usage,
)
from harness.surfaces.compatible.exchange import ModelRequest, ReplyEnd, ReplyEnded, ReplyPart, Terms
from harness.surfaces.compatible.reading import TurnReading
from harness.surfaces.compatible.reply import Reply
from harness.surfaces.compatible.reply_usage import usage_between
from harness.surfaces.compatible.room import Room

figures = st.none() | st.integers(0, 1000)
usages = st.builds(UsageInfo, input_tokens=figures, output_tokens=figures, cached_input_tokens=figures)


@st.composite
def said_items(draw: st.DrawFn) -> list[OutputItem]:
    """Messages one after the other: streamed, streamed and repeated whole, whole only, or taken back."""
    items: list[Any] = []
    for number, way in enumerate(draw(st.lists(st.sampled_from(["deltas", "both", "whole", "discarded"]), max_size=5))):
        item_id, words = f"m{number}", draw(st.lists(st.sampled_from(["a", "b ", "c"]), min_size=1, max_size=3))
        if way != "whole":
            items += [{"type": TextDelta, "text": word, "item_id": item_id} for word in words]
        if way in ("both", "whole"):
            items.append({"type": Message, "content": [TextBlock(text="".join(words))], "item_id": item_id})
        if way == "discarded":
            items.append({"type": ItemDiscarded, "reason": "restarted", "item_id": item_id})
    return [one.pop("type")(sequence_no=number, at=0, **one) for number, one in enumerate(items, 1)]


def state_of(items: list[OutputItem], number: int, **rest: Any) -> TurnState:
    base: dict[str, Any] = {"status": TurnStatus.RUNNING, "last_activity_at": 0, "started_at": 0}
    return TurnState(**{**base, **rest}, sequence_no=number, new_output_items=items)


@requirement("openai:ends")
@given(st.data(), said_items())
def test_the_same_is_said_however_the_polls_cut_the_turn(data: st.DataObject, items: list[OutputItem]) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(items)))) | {0, len(items)})
    reading, reply = TurnReading("t"), Reply("fake")
    reading.begin_reply()
    for start, end in pairwise(cuts):
        reply.add(*reading.read(state_of(items[start:end], end)))
    reply.add(ReplyEnded(ReplyEnd.END_TURN, None))

    gone = {item.item_id for item in items if isinstance(item, ItemDiscarded)}
    expected: dict[str | None, str] = {}
    for item in items:
        if isinstance(item, TextDelta) and item.item_id not in gone:
            expected[item.item_id] = expected.get(item.item_id, "") + item.text
        if isinstance(item, Message):
            expected.setdefault(item.item_id, "".join(b.text for b in item.content if isinstance(b, TextBlock)))
    said = {text for message in reply.messages() for text in _texts(message.content)}
    assert "\n\n".join(expected.values()) in said
    assert len(said) == (2 if gone else 1)


@requirement("openai:ends")
@given(usages, usages)
def test_what_one_reply_cost_and_the_one_before_it_are_the_whole(before: UsageInfo, added: UsageInfo) -> None:
    now = add_usage(before, added)
    cost = usage_between(before, now)

    assert cost is not None
    for name in ("input_tokens", "output_tokens", "cached_input_tokens"):
        known = (getattr(before, name), getattr(added, name))
        assert getattr(cost, name) == (None if known == (None, None) else known[1] or 0)


@requirement("openai:retry")
def test_recorded_replies_are_bounded_and_the_oldest_goes_first() -> None:
    room = Room(llm=None)  # type: ignore[arg-type]
    replies = [(_request(str(number)), Reply("fake")) for number in range(3)]
    growing = (_request("growing"), Reply("fake"))
    room.note(*_noted(growing))
    for request, reply in replies:
        room.note(request, Terms(), reply)
        reply.add(_END)
        room.record(request, Terms(), reply, until=10.0, limit=3)

    assert room.equal(growing[0], Terms(), 5.0) is growing[1]
    assert [room.equal(request, Terms(), 5.0) for request, _ in replies] == [None, replies[1][1], replies[2][1]]
    assert [room.equal(request, Terms(), 10.0) for request, _ in replies] == [None, None, None]
    assert room.equal(replies[2][0], Terms(wants_new=True), 5.0) is None
    assert room.equal(growing[0], Terms(conversation_id="c_1"), 5.0) is None


_END: ReplyPart = ReplyEnded(ReplyEnd.END_TURN, None)


def _request(fingerprint: str) -> ModelRequest:
    return ModelRequest("fake", None, (), fingerprint=fingerprint)


def _noted(pair: tuple[ModelRequest, Reply]) -> tuple[ModelRequest, Terms, Reply]:
    return pair[0], Terms(), pair[1]


def _texts(content: list[Any]) -> list[str]:
    return [block.text for block in content]
