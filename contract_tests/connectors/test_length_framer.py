"""Messages with their length before them, however the bytes are cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors._length_framer import LengthFramer, framed
from contract_tests.requirements import requirement
from harness.errors import PeerProtocolError

TEXTS = st.lists(st.text(max_size=30), max_size=5)


@requirement("copilot:frames", "R-B5")
@given(TEXTS, st.lists(st.integers(min_value=1, max_value=40)))
def test_any_cutting_gives_the_same_messages(texts: list[str], cuts: list[int]) -> None:
    stream = b"".join(framed({"text": text}) for text in texts)
    framer, found = LengthFramer(), []
    for size in [*cuts, len(stream) + 1]:
        part, stream = stream[:size], stream[size:]
        found += framer.feed(part)
    assert [json.loads(body)["text"] for body in found] == texts
    assert framer.unfinished_bytes == 0


@requirement("copilot:frames")
@pytest.mark.parametrize("data", [b"X: 1\r\n\r\n", b"Content-Length: x\r\n\r\n", b"no head at all " * 400])
def test_a_message_without_a_length_is_an_error_and_not_a_wait(data: bytes) -> None:
    with pytest.raises(PeerProtocolError, match="no length"):
        LengthFramer().feed(data)


@requirement("copilot:frames")
def test_a_message_longer_than_allowed_is_refused_by_its_head() -> None:
    with pytest.raises(PeerProtocolError, match="max_line_bytes"):
        LengthFramer(max_message_bytes=10).feed(b"content-length: 11\r\nX: y\r\n\r\n")
