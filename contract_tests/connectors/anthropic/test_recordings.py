"""Recorded streams of the Messages API (`fixtures/anthropic`), read whole and cut at random places."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.anthropic.reader import MessageReader
from contract_tests.connectors.heard import Listener
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness.contract import StopReason, UsageInfo
from harness.errors import ContextOverflow, ProviderError
from harness.model_loop import CallMade, ModelAnswer, text_said
from harness.model_loop.provider_errors import error_of
from harness.wire.sse import SseReader

RECORDINGS = ROOT / "fixtures" / "anthropic"


@dataclass(frozen=True)
class Told:
    """What a recording says; `thinking` is what was shown of it."""

    text: str = ""
    thinking: str = ""
    calls: tuple[CallMade, ...] = ()
    stop: StopReason = StopReason.END_TURN
    usage: UsageInfo = field(default_factory=UsageInfo)
    must_continue: bool = False


def usage(read: int, written: int | None, plain: int, output: int) -> UsageInfo:
    return UsageInfo(
        input_tokens=plain + read + (written or 0),
        cached_input_tokens=read,
        cache_write_tokens=written,
        output_tokens=output,
    )


USUAL = usage(0, 0, 100, 20)
ODD_ARGUMENTS = r'{"city": "Oslo", "at": 1.10, "note": "– \u2028 \ud83d\ude00 ö 天気"}'  # noqa: RUF001
SCRIPTED = {
    "parallel_calls": Told(
        "I look it up.\n",
        "Two cities, two calls.",
        (
            CallMade("toolu_oslo", "weather", ODD_ARGUMENTS),
            CallMade("toolu_rome", "weather", '{"city":"Rome"}'),
            CallMade("toolu_clock", "clock", "{}"),
        ),
        usage=usage(300, 200, 1000, 50),
    ),
    "text": Told("Grüße: 天気 😀 \u2028 and\r\n\n the end.", usage=USUAL),
    "pause": Told("Let me search on.", usage=USUAL, must_continue=True),
    "cut_call": Told("I look", stop=StopReason.MAX_TOKENS, usage=USUAL),
}

CALLED = CallMade("call_1_0", "weather", '{"city": "Tromsø – 天気 😀"}')  # noqa: RUF001
CITIES = ("Oslo", "Rome", "Oslo")
LLAMA = {
    "parallel_calls": Told(
        calls=tuple(CallMade(f"call_6_{n}", "weather", f'{{"city": "{city}"}}') for n, city in enumerate(CITIES)),
        usage=usage(390, None, 1, 97),
    ),
    "text": Told('\n\nWhat is the purpose of the "Chatbot"', stop=StopReason.MAX_TOKENS, usage=usage(1, None, 53, 12)),
    "odd_letters": Told(calls=(CALLED,), usage=usage(0, None, 160, 35)),
    "cut_call": Told(stop=StopReason.MAX_TOKENS, usage=usage(390, None, 1, 4)),
}


def read(recording: Path, cuts: list[int]) -> tuple[ModelAnswer, Listener]:
    stream = recording.read_bytes()
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    listener, events = Listener(), SseReader()
    reader = MessageReader(listener, "the server")
    for start, end in pairwise(edges):
        for event in events.feed(stream[start:end]):
            reader.receive(event.data)
    return reader.answer(), listener


def told(recording: Path, cuts: list[int]) -> Told:
    answer, listener = read(recording, cuts)
    assert answer.usage is not None and listener.unknown_kinds == []
    text = text_said(answer.said)
    assert "".join(piece for _, piece in listener.texts) == text, "what is shown is what was said"
    thinking = "".join(listener.thoughts)
    return Told(text, thinking, tuple(answer.calls), answer.stop, answer.usage, answer.must_continue)


cuts = st.lists(st.integers(0, 10_000), max_size=40)


@requirement("anthropic:recordings")
@pytest.mark.parametrize("name", SCRIPTED)
@settings(max_examples=50)
@given(cuts=cuts)
def test_a_recorded_answer_is_the_same_however_it_is_cut(name: str, cuts: list[int]) -> None:
    assert told(RECORDINGS / "scripted" / f"{name}.sse", cuts) == SCRIPTED[name]


@requirement("anthropic:recordings")
def test_a_recorded_answer_can_be_passed_back_block_by_block() -> None:
    answer, _ = read(RECORDINGS / "scripted" / "parallel_calls.sse", [])
    native: Any = answer.native
    assert [block["type"] for block in native] == ["thinking", "text", "tool_use", "tool_use", "tool_use"]
    assert native[0]["signature"] and native[2]["input"] == json.loads(ODD_ARGUMENTS)


@requirement("anthropic:recordings")
@settings(max_examples=50)
@given(cuts=cuts)
def test_a_recording_that_was_cut_off_is_an_error_however_it_is_cut(cuts: list[int]) -> None:
    with pytest.raises(ProviderError) as caught:
        read(RECORDINGS / "scripted" / "dropped.sse", cuts)
    assert caught.value.detail["reason"] == "network"


@requirement("anthropic:recordings")
@pytest.mark.parametrize("name", LLAMA)
@settings(max_examples=50)
@given(cuts=cuts)
def test_a_recorded_answer_of_llama_cpp_is_the_same_however_it_is_cut(name: str, cuts: list[int]) -> None:
    assert told(RECORDINGS / "llama.cpp" / f"{name}.sse", cuts) == LLAMA[name]


@requirement("anthropic:recordings")
def test_a_recorded_refusal_of_llama_cpp_is_an_overflow_with_the_window() -> None:
    body = (RECORDINGS / "llama.cpp" / "too_long.json").read_text(encoding="utf-8")
    error = error_of(400, json.loads(body), {}, "the server")
    assert isinstance(error, ContextOverflow)
    assert (error.detail["context_window"], error.detail["prompt_tokens"]) == (4096, 6052)
