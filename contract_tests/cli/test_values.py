"""Option values that are more than a word."""

import pytest

from contract_tests.requirements import requirement
from harness.cli.values import milliseconds, names, pairs
from harness.errors import InvalidArgument


@requirement("cli:values:durations")
@pytest.mark.parametrize(
    ("typed", "meant"),
    [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("5", 5000), ("1.5", 1500), ("250ms", 250), (None, None)],
)
def test_durations_are_seconds_unless_they_say_otherwise(typed: str | None, meant: int | None) -> None:
    assert milliseconds(typed, "--timeout") == meant


@requirement("cli:values:durations")
@pytest.mark.parametrize("typed", ["", "soon", "-5", "0", "5d", "1e3"])
def test_what_is_no_duration_is_refused_with_the_options_name(typed: str) -> None:
    with pytest.raises(InvalidArgument, match=r"--timeout: .*90s, 10m, 2h"):
        milliseconds(typed, "--timeout")


@requirement("cli:values:json-pairs")
def test_values_of_pairs_are_json_or_else_text() -> None:
    typed = ["a=1", "b=true", 'c={"d": [null]}', "e=plain text", "f=x=y", 'g="1"', "h="]
    meant = {"a": 1, "b": True, "c": {"d": [None]}, "e": "plain text", "f": "x=y", "g": "1", "h": ""}
    assert pairs(typed) == meant
    with pytest.raises(InvalidArgument, match="KEY=VALUE"):
        pairs(["a"])


def test_names_come_with_commas_or_one_by_one() -> None:
    assert names(["a,b", " c ", ""]) == ["a", "b", "c"]
