"""Recordings whose bytes come in other pieces than recorded: a connector reads them alike."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract_tests.conformance.test_replay import RECORDED, SCENARIOS
from contract_tests.requirements import requirement
from harness.testing.drift import changes
from harness.testing.recording import RACES, read_recording, recordings_of, replay
from harness.testing.rows import ROWS

SIZES = st.tuples(st.integers(50, 2000), st.lists(st.integers(1, 2000), min_size=1, max_size=5)).map(
    lambda drawn: [drawn[0], *drawn[1]]
)
"""Of the pieces, in turn. One of them is not small: with pieces of a byte or two throughout it would take minutes."""


@requirement("conformance:replay:cut")
@pytest.mark.parametrize("row", RECORDED)
@settings(max_examples=4)
@given(data=st.data())
async def test_a_recording_in_other_pieces_gives_the_same_trace(row: str, data: st.DataObject) -> None:
    files = recordings_of(row)
    scenario = data.draw(st.sampled_from(sorted(files)), label="scenario")
    cuts = data.draw(SIZES, label="sizes")
    with TemporaryDirectory(prefix="harness-replay-") as directory:
        outcome = await replay(SCENARIOS[scenario], ROWS[row], files[scenario], Path(directory), cuts)
    if scenario not in RACES:  # there only the claims of the scenario are looked at
        assert changes(read_recording(files[scenario]).trace, outcome.trace) == []
