"""Requests at the bridge find their calls in the peer's stream, whatever comes first."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge_mcp.correlation import Correlation, same_json
from contract_tests.requirements import requirement
from harness.contract.requests import CallIdSource


def ids(*found: Any) -> list[str | None]:
    return [one.call_id if one is not None else "nothing yet" for one in found]


@requirement("R-G6", "R-G4")
def test_identical_parallel_calls_are_taken_in_the_order_of_the_stream() -> None:
    calls = Correlation()
    for call_id in ("c1", "c2"):
        calls.see(call_id, tool_name="look", arguments={"city": "Oslo"}, is_written=True)
    first, second = (calls.find("look", {"city": "Oslo"}) for _ in range(2))
    assert ids(first, second) == ["c1", "c2"]
    assert first is not None
    assert (first.source, first.order) == (CallIdSource.MATCHED, 0)
    assert calls.find("look", {"city": "Oslo"}) is None


@requirement("R-G6")
def test_a_told_id_is_exact_whatever_the_stream_has_said() -> None:
    calls = Correlation()
    calls.see("c1", tool_name="look", arguments={})
    calls.see("c2", tool_name="look", arguments={})
    told = calls.find("look", {}, told_id="c2")
    assert told is not None
    assert (told.call_id, told.source, told.order) == ("c2", CallIdSource.EXACT, 1)
    assert ids(calls.find("look", {})) == ["c1"], "a told one is not found again"
    unseen = calls.find("look", {}, told_id="c9")
    assert unseen is not None
    assert (unseen.source, unseen.order) == (CallIdSource.EXACT, None)


@requirement("R-G6")
def test_a_request_that_overtakes_the_stream_waits_and_is_made_up_at_last() -> None:
    calls = Correlation()
    assert calls.find("look", {"a": 1}) is None
    calls.see("c1", tool_name="look", arguments={})
    assert calls.find("look", {"a": 1}) is None, "its arguments may still come"
    calls.see("c1", arguments={"a": 1})
    assert ids(calls.find("look", {"a": 1})) == ["c1"]
    last = calls.find("look", {"a": 1}, is_last_try=True)
    assert last is not None
    assert (last.call_id, last.source) == (None, CallIdSource.MADE_UP)


@requirement("R-G6")
def test_a_peer_that_tells_no_arguments_is_matched_by_tool_and_order() -> None:
    calls = Correlation()
    calls.see("c1", tool_name="look", is_written=True)
    calls.see("c2", tool_name="save", is_written=True)
    assert ids(calls.find("save", {"a": 1}), calls.find("look", {"b": 2})) == ["c2", "c1"]


@requirement("R-G6")
def test_empty_arguments_that_may_still_be_filled_come_after_those_that_are_meant_so() -> None:
    calls = Correlation()
    calls.see("filling", tool_name="look", arguments={})
    calls.see("empty", tool_name="look", arguments={}, is_written=True)
    assert ids(calls.find("look", {})) == ["empty"]
    calls.see("filling", arguments={"a": 1}, is_written=True)
    assert ids(calls.find("look", {"a": 1})) == ["filling"]


@requirement("R-G6")
def test_a_call_that_is_over_is_no_later_request() -> None:
    calls = Correlation()
    calls.see("c1", tool_name="look", arguments={}, is_written=True)
    calls.close("c1")
    calls.close("never seen")
    assert calls.find("look", {}) is None


@requirement("R-G6")
@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": True}, {"a": 1}, False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": [1]}, {"a": [1, 1]}, False),
        ({"a": None}, {}, False),
        ({"a": {"b": "x"}}, {"a": {"b": "x"}}, True),
        ({"a": "1"}, {"a": 1}, False),
    ],
)
def test_arguments_are_compared_as_json(one: Any, other: Any, equal: bool) -> None:
    assert same_json(one, other) is equal


CALLS = st.lists(st.tuples(st.sampled_from(["look", "save"]), st.sampled_from([{}, {"a": 1}, {"a": 2}])), max_size=6)


@requirement("R-G6", "R-G1")
@given(CALLS, st.randoms(use_true_random=False), st.booleans())
def test_in_any_interleaving_every_request_finds_an_equal_call_and_none_is_found_twice(
    calls: list[tuple[str, dict[str, int]]], random: Any, tells_late: bool
) -> None:
    correlation = Correlation()
    steps: list[tuple[str, int]] = [("see", number) for number in range(len(calls))]
    if tells_late:
        steps += [("fill", number) for number in range(len(calls))]
    steps += [("ask", number) for number in range(len(calls))]
    random.shuffle(steps)
    found: dict[int, str] = {}
    waiting: list[int] = []

    def ask() -> None:
        for number in list(waiting):
            name, arguments = calls[number]
            match = correlation.find(name, arguments)
            if match is not None and match.call_id is not None:
                found[number] = match.call_id
                waiting.remove(number)

    for step, number in steps:
        name, arguments = calls[number]
        if step == "see":
            told = {} if tells_late else arguments
            correlation.see(f"c{number}", tool_name=name, arguments=told, is_written=not tells_late)
        elif step == "fill":
            correlation.see(f"c{number}", tool_name=name, arguments=arguments, is_written=True)
        else:
            waiting.append(number)
        ask()

    assert [one for one, count in Counter(found.values()).items() if count > 1] == []
    if not tells_late:
        assert waiting == []
        for number, call_id in found.items():
            assert calls[int(call_id[1:])] == calls[number]
