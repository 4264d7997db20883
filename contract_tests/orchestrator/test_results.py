"""Results that a connector cannot carry as they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contract_tests.requirements import requirement
from harness.contract import ImageBlock, LlmCapabilities, TextBlock, text_of
from harness.orchestrator.results import cut_middle, fitted
from harness.orchestrator.tool_provider import ToolOutcome

IMAGE = ImageBlock(data="aGk=", media_type="image/png")


def limited(chars: int | None = None, images: bool = False) -> LlmCapabilities:
    return LlmCapabilities(max_result_chars=chars, images_in_tool_results=images)


@requirement("orchestrator:results:fit")
def test_long_text_keeps_head_and_tail_and_says_how_much_is_missing() -> None:
    text = "head" + "x" * 10_000 + "tail"
    shown = cut_middle(text, 1000)
    assert len(shown) == 1000
    assert shown.startswith("head")
    assert shown.endswith("tail")
    kept = len(shown.replace(shown[shown.index("\n[...") : shown.index("...]\n") + 5], ""))
    assert f"[... {len(text) - kept} of {len(text)} characters left out ...]" in shown


@requirement("orchestrator:results:fit")
@given(st.lists(st.integers(0, 400), min_size=1, max_size=6), st.integers(1, 800))
def test_texts_fit_together_and_short_ones_stay_whole(lengths: list[int], limit: int) -> None:
    content = [TextBlock(text="x" * length) for length in lengths]
    shown = fitted(ToolOutcome(content), limited(limit)).content
    assert sum(len(block.text) for block in shown if isinstance(block, TextBlock)) <= limit
    for before, after in zip(content, shown, strict=True):
        if len(before.text) <= limit // len(lengths):
            assert after == before


@requirement("orchestrator:results:fit")
def test_structured_content_is_left_out_rather_than_cut() -> None:
    outcome = ToolOutcome([TextBlock(text="x" * 50)], structured_content_json='{"x":"' + "x" * 60 + '"}')
    assert fitted(outcome, limited(100)).structured_content_json is None
    assert fitted(outcome, limited(1000)) == outcome


@requirement("orchestrator:results:fit")
def test_image_that_cannot_pass_becomes_a_note() -> None:
    captioned = fitted(ToolOutcome([TextBlock(text="look"), IMAGE]), limited())
    assert not captioned.is_error
    assert "image/png" in text_of(captioned.content)
    assert fitted(ToolOutcome([IMAGE]), limited()).is_error
    assert fitted(ToolOutcome([IMAGE]), limited(images=True)).content == [IMAGE]
