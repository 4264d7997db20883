"""Words that a peer puts around results: taken off where they are known to the letter, and told in the matrix."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract_tests.requirements import requirement
from harness.scripted_model import PastCall
from harness.scripted_model.dialect import ModelRequest
from harness.scripted_model.words import without_words
from harness.testing.agent_rows import CODEX_ACP_WORDS, GEMINI_WORDS
from harness.testing.checks import Divergence
from harness.testing.matrix import Cell, Column, Matrix
from harness.testing.row import Row, Words, scripted
from harness.testing.rows import FAKE
from harness.testing.running import Outcome, Verdict, run_scenario
from harness.testing.scenarios import all_scenarios

SCENARIOS = all_scenarios()


def read_by(words: Words, result: str | None) -> PastCall:
    [past] = without_words(ModelRequest(past_calls=(PastCall("c1", "save", result),)), words.around).past_calls
    return past


@requirement("conformance:words")
@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        (GEMINI_WORDS, "<untrusted_context>\n", "\n</untrusted_context>"),
        (CODEX_ACP_WORDS, "Wall time: 0.0128 seconds\nOutput:", ""),
    ],
)
@pytest.mark.parametrize("bare", ["12 °C", "", "\n two\nlines \n", "Output:", '[{"a":1}]', "<untrusted_context>\nx\n"])
def test_exactly_the_known_words_are_taken_off_and_nothing_of_the_result(
    words: Words, before: str, after: str, bare: str
) -> None:
    assert read_by(words, before + bare + after) == PastCall("c1", "save", bare, had_words=True)


@requirement("conformance:words")
@pytest.mark.parametrize(
    ("words", "other"),
    [
        (GEMINI_WORDS, "<untrusted_context>\n12 °C"),
        (GEMINI_WORDS, "<untrusted_context>12 °C</untrusted_context>"),
        (GEMINI_WORDS, "<untrusted_context>\n12 °C\n</untrusted_context>\n"),
        (GEMINI_WORDS, " <untrusted_context>\n12 °C\n</untrusted_context>"),
        (CODEX_ACP_WORDS, "Wall time: 0.0128 seconds\n12 °C"),
        (CODEX_ACP_WORDS, "Wall time: a while seconds\nOutput:12 °C"),
        (CODEX_ACP_WORDS, "Chunk ID: 0a1b2c\nWall time: 0.0128 seconds\nOutput:12 °C"),
        (CODEX_ACP_WORDS, None),
    ],
)
def test_other_words_stay_so_that_the_scenario_falls(words: Words, other: str | None) -> None:
    assert read_by(words, other) == PastCall("c1", "save", other)


@requirement("conformance:words")
async def test_a_result_is_compared_without_the_words_and_they_are_told_where_they_were_seen(tmp_path: Path) -> None:
    seen = await run_scenario(SCENARIOS["tool-error"], row_with("Error: (disk full)"), tmp_path / "seen")
    unseen = await run_scenario(SCENARIOS["tool-error"], row_with("Oops: (.*)"), tmp_path / "unseen")
    with pytest.raises(Divergence, match="expected 'It said: at last', found 'It said: last'"):
        await run_scenario(SCENARIOS["slow-tool"], row_with("at (.*)"), tmp_path / "spoilt")

    assert (seen.verdict, seen.note) == (Verdict.SUPPORTED, "it has words")
    assert (unseen.verdict, unseen.note) == (Verdict.SUPPORTED, "")


def row_with(around: str) -> Row:
    """A connector with words around some results: those of ours, or what is spoilt."""

    def options(url: str, directory: Path) -> Mapping[str, Any]:
        return {"base_url": f"{url}/v1"}

    return scripted("openai:chat", options, model="m", words=Words(re.compile(around), "it has words"))


@requirement("conformance:words")
async def test_that_the_calls_of_one_round_are_mixed_is_told_where_there_are_several(tmp_path: Path) -> None:
    row = replace(FAKE, mixes_calls="its calls are mixed")

    several = await run_scenario(SCENARIOS["identical-calls"], row, tmp_path / "several")
    single = await run_scenario(SCENARIOS["one-call"], row, tmp_path / "single")

    assert (several.verdict, several.note) == (Verdict.SUPPORTED, "its calls are mixed")
    assert (single.verdict, single.note) == (Verdict.SUPPORTED, "")


@requirement("conformance:words")
def test_the_matrix_marks_a_yes_with_words_and_tells_them() -> None:
    outcome = Outcome(Verdict.SUPPORTED, peer="agent 1", note="its model reads the time")
    plain = replace(outcome, note="")
    cells = {"one-call": Cell.of(outcome), "slow-tool": Cell.of(outcome), "no-tool": Cell.of(plain)}

    lines = Matrix({"agent": Column(peer="agent 1", cells=cells)}).render(SCENARIOS).splitlines()

    assert "| one-call | yes\\* |" in lines
    assert "| no-tool | yes |" in lines
    assert "- `agent` one-call, slow-tool: yes, but its model reads the time" in lines
