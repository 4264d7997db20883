"""Text and JSON on their way over a wire."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from connectors._json import (
    compact_json,
    escaped_surrogates,
    json_line,
    number_in,
    object_in,
    objects_in,
    plain_text_in,
)
from connectors._text import split_before_half_pair, without_surrogates
from contract_tests.requirements import requirement

_ANY_TEXT = st.text(st.characters(exclude_categories=()))


@requirement("R-J3")
@given(_ANY_TEXT)
def test_text_without_surrogates_is_utf_8_and_otherwise_the_same(text: str) -> None:
    repaired = without_surrogates(text)
    repaired.encode()
    assert repaired == without_surrogates(repaired)
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert repaired == text


@requirement("R-J3")
@given(st.text(), st.data())
def test_a_text_cut_anywhere_in_utf_16_comes_out_whole(text: str, data: st.DataObject) -> None:
    """As a program does that cuts its strings between the halves of a character."""
    units = text.encode("utf-16-le")
    cut = data.draw(st.integers(0, len(units) // 2)) * 2
    halves = [part.decode("utf-16-le", "surrogatepass") for part in (units[:cut], units[cut:])]
    out, half = "", ""
    for part in halves:
        whole, half = split_before_half_pair(half + part)
        out += without_surrogates(whole)
    assert out + half == text


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@requirement("R-J1", "R-J3")
@given(_JSON)
def test_json_keeps_every_value_on_one_line_of_utf_8(value: Any) -> None:
    def joined(one: Any) -> Any:
        """Two halves that stand side by side are one character to any reader of JSON."""
        return json.loads(json.dumps(one))

    line = json_line(value)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert json.loads(line) == joined(value)
    assert json.loads(compact_json(value)) == joined(value)


@requirement("R-J3")
def test_surrogates_in_json_text_become_escapes() -> None:
    assert escaped_surrogates('{"a":"\ud83d\ude00 \ud83d é"}') == '{"a":"\U0001f600 \\ud83d é"}'


@requirement("R-B9")
def test_a_member_of_another_shape_is_as_good_as_absent() -> None:
    assert object_in([1]) == {} and objects_in({"a": 1}) == [] and plain_text_in(5) == ""
    assert objects_in([1, {"a": 1}]) == [{"a": 1}]
    assert [number_in(value) for value in (True, "1", float("inf"), 1.5, 2)] == [None, None, None, 1.5, 2]
