"""The way through harnesses that stand on each other: told by a header and by the options, judged by each."""

from __future__ import annotations

import pytest

from contract_tests.requirements import requirement
from harness.errors import InvalidArgument
from harness.wire.hops import MAX_HOPS, joined, passed_on, read_hops, write_hops


@requirement("stacking:loop")
def test_each_harness_adds_itself_and_refuses_what_has_passed_it() -> None:
    way = passed_on(passed_on((), "h_a"), "h_b")
    assert read_hops(write_hops(way)) == way == ("h_a", "h_b")
    with pytest.raises(InvalidArgument, match="in a circle \\(h_a -> h_b -> h_a\\)") as told:
        passed_on(way, "h_a")
    assert told.value.detail == {"hops": ["h_a", "h_b", "h_a"]}


@requirement("stacking:loop")
def test_a_way_that_is_too_long_is_refused() -> None:
    way: tuple[str, ...] = ()
    for number in range(MAX_HOPS):
        way = passed_on(way, f"h_{number}")
    with pytest.raises(InvalidArgument, match=f"more than {MAX_HOPS}"):
        passed_on(way, "h_last")


@requirement("stacking:loop")
def test_a_way_told_twice_is_one_and_no_header_is_none() -> None:
    assert joined(("h_a", "h_b"), ("h_a", "h_b")) == joined(("h_a", "h_b"), ()) == joined((), ("h_a", "h_b"))
    assert read_hops(None) == read_hops("") == ()


@requirement("stacking:loop")
@pytest.mark.parametrize("strange", ["a\r\nX-More: b", "", "é", "x" * 65])
def test_what_is_no_id_is_refused(strange: str) -> None:
    with pytest.raises(InvalidArgument, match="is no id of a harness"):
        passed_on((strange,), "h_a")
