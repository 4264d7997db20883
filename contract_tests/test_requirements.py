"""The manifest and the tests agree, in both directions.

Read from the source, not from a collection, so that running one file gives the same verdict as running all.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract_tests.requirements import REQUIREMENTS, requirement
from harness.testing.scenarios import all_scenarios

TESTS = Path(__file__).parent


def carried_ids(source: str) -> Iterator[str]:
    """Yield every id that a `requirement(...)` call in this source names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "requirement":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def ids_by_file() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for file in sorted(TESTS.rglob("test_*.py")):
        for one in carried_ids(file.read_text(encoding="utf-8")):
            found[one].add(file.relative_to(TESTS).as_posix())
    for scenario in all_scenarios().values():  # conformance/test_rows.py runs them
        for one in scenario.requirements:
            found[one].add(f"harness/testing/scenarios: {scenario.name}")
    return found


def test_every_id_a_test_carries_is_in_the_manifest() -> None:
    unknown = {one: sorted(files) for one, files in ids_by_file().items() if one not in REQUIREMENTS}
    assert unknown == {}, "add these to contract_tests/requirements/"


def test_every_requirement_without_a_known_gap_is_carried_by_a_test() -> None:
    carried = ids_by_file()
    unproved = sorted(one for one, entry in REQUIREMENTS.items() if entry.known_gap is None and one not in carried)
    assert unproved == [], "mark the test that proves it with @requirement(...), or state its known_gap"


def test_every_requirement_says_what_it_promises_and_where_it_comes_from() -> None:
    for entry in REQUIREMENTS.values():
        assert entry.sentence.endswith("."), entry.id
        assert entry.source, entry.id
        assert entry.known_gap != "", entry.id


def test_an_id_that_is_not_in_the_manifest_cannot_be_carried() -> None:
    with pytest.raises(LookupError, match="'no:such:id'"):
        requirement(*["no:such:id"])
