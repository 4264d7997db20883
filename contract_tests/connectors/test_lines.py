"""Bytes into lines: only 0x0A ends one, however the bytes arrive."""

import json
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors._lines import DEFAULT_MAX_LINE_BYTES, LineFramer
from contract_tests.requirements import requirement
from harness.errors import PeerProtocolError

MIB = 1024 * 1024
TRAPS = "a\u2028b\u2029c\u0085d\x0be\x0cf\rg\x1c\x1d\x1e\U0001f600\ufeff"


def in_pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def lines_of(framer: LineFramer, pieces: list[bytes]) -> list[bytes]:
    return [line for piece in pieces for line in framer.feed(piece)]


@requirement("process:lines:any-chunking", "process:lines:byte-exact")
@given(st.lists(st.binary().map(lambda line: line.replace(b"\n", b"\r"))), st.binary(), st.lists(st.integers(0, 5000)))
def test_any_chunking_gives_the_same_lines(lines: list[bytes], rest: bytes, cuts: list[int]) -> None:
    rest = rest.replace(b"\n", b"")
    framer = LineFramer()
    stream = b"".join(line + b"\n" for line in lines) + rest
    assert lines_of(framer, in_pieces(stream, cuts)) == lines
    assert framer.unfinished_bytes == len(rest)


@requirement("process:lines:byte-exact")
def test_line_separators_and_characters_survive_every_split_position() -> None:
    message = {"text": TRAPS}
    line = json.dumps(message, ensure_ascii=False).encode()
    for cut in range(len(line) + 1):
        framer = LineFramer()
        [whole] = lines_of(framer, [line[:cut], line[cut:] + b"\n"])
        assert json.loads(whole) == message


@requirement("process:lines:foreign-lines-pass")
def test_what_is_no_json_is_a_line_like_any_other() -> None:
    foreign = [b"", b"warning: something", b"\xff\xfe\x00", b'{"broken":', b"{}\r"]
    assert LineFramer().feed(b"\n".join(foreign) + b"\n") == foreign


@requirement("process:lines:limit")
def test_fifty_mebibytes_in_one_line_pass_in_linear_time() -> None:
    line = (TRAPS.encode() * (50 * MIB // len(TRAPS.encode()) + 1))[: 50 * MIB]
    framer = LineFramer()
    pieces = [line[start : start + 4096] for start in range(0, len(line), 4096)]
    began = time.perf_counter()
    [whole] = lines_of(framer, [*pieces, b"\n"])
    assert time.perf_counter() - began < 5  # 1 s for each 10 MiB; a quadratic framer needs half a minute
    assert whole == line


@requirement("process:lines:limit")
def test_the_limit_is_64_mebibytes_unless_configured() -> None:
    assert DEFAULT_MAX_LINE_BYTES == 64 * MIB
    assert LineFramer(max_line_bytes=5).feed(b"12345\n") == [b"12345"]
    with pytest.raises(PeerProtocolError, match=r"longer than 5 bytes; raise 'max_line_bytes'"):
        LineFramer(max_line_bytes=5).feed(b"123456")


@requirement("process:lines:limit")
@given(st.lists(st.integers(0, 40), max_size=6))
def test_lines_before_one_that_is_too_long_are_given_out_whatever_the_chunking(cuts: list[int]) -> None:
    framer = LineFramer(max_line_bytes=6)
    given_out: list[bytes] = []
    with pytest.raises(PeerProtocolError) as caught:
        for piece in in_pieces(b"one\ntwo\nfar too long\nthree\n", cuts):
            given_out += framer.feed(piece)
        framer.feed(b"")
    assert given_out == [b"one", b"two"]
    assert str(caught.value.detail["line"]).startswith("far too")
    with pytest.raises(PeerProtocolError):
        framer.feed(b"four\n")
