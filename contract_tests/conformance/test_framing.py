"""What goes through a tee keeps the ends of its messages, however its bytes come."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from connectors._length_framer import LengthFramer
from contract_tests.requirements import requirement
from harness.testing.peers.framing import framed, messages_in

MESSAGES = st.lists(st.text().map(lambda text: b'{"text": "%s"}' % text.encode()))


@requirement("conformance:framing")
@given(messages=MESSAGES)
def test_messages_with_a_length_come_out_as_they_went_in(messages: list[bytes]) -> None:
    said = b"".join(framed(message, "length") for message in messages)
    assert [*messages_in(io.BytesIO(said))] == [(message, "length") for message in messages]
    assert LengthFramer().feed(said) == messages


@requirement("conformance:framing")
def test_lines_stay_lines_and_half_a_line_stays_half_of_one() -> None:
    said = b'{"a": 1}\r\n\nplain\n{"half'
    told = [*messages_in(io.BytesIO(said))]
    assert told == [(b'{"a": 1}\r', "line"), (b"", "line"), (b"plain", "line"), (b'{"half', "none")]
    assert b"".join(framed(*one) for one in told) == said


@requirement("conformance:framing")
def test_other_lines_of_a_head_say_nothing() -> None:
    said = b"content-length: 2\r\nContent-Type: application/json\r\n\r\n{}Content-Length: 4\r\n\r\nnull"
    assert [*messages_in(io.BytesIO(said))] == [(b"{}", "length"), (b"null", "length")]
