"""What the id of a reply says, and what no text of a client can make of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contract_tests.requirements import requirement
from harness.surfaces.compatible.reply_ids import ReplyId

names = st.text("ab_-0", min_size=1, max_size=5)


@requirement("responses:previous")
@given(names, st.integers(1, 99), st.integers(0, 10**9 - 1))
def test_an_id_says_where_its_reply_begins(conversation: str, turn: int, since: int) -> None:
    reply_id = ReplyId(conversation, f"t{turn}", since)
    assert ReplyId.read(str(reply_id)) == reply_id


@requirement("responses:previous")
@given(st.text("c-t1²٣ \ud800", max_size=12))
def test_any_other_text_is_none_or_reads_back_as_itself(text: str) -> None:
    reply_id = ReplyId.read(text)
    assert reply_id is None or ReplyId.read(str(reply_id)) == reply_id
