"""The demo's two sides: what the scripted model says, and the caller's tools that it calls."""

from __future__ import annotations

import random
from typing import Any

import anyio

from harness.orchestrator.marks import tool

PROMPT = "Which is warmer today, Oslo or Rome? Book me a seat on the train to the warmer one."
_WEATHER = {"Oslo": "3 °C and rain", "Rome": "19 °C and sun"}
_PACE = {"chunk_delay_seconds": 0.03}
"""So that a person sees the text stream."""

SCRIPT: list[dict[str, Any]] = [
    {
        "text": ["I will ", "look at ", "both cities ", "at once."],
        "calls": [
            {"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "toolu_demo_oslo"},
            {"name": "get_weather", "arguments": {"city": "Rome"}, "id": "toolu_demo_rome"},
        ],
        "usage": {"input_tokens": 900, "output_tokens": 60},
        **_PACE,
    },
    {
        "text": ["Oslo has {{results.toolu_demo_oslo}}, ", "Rome has {{results.toolu_demo_rome}}. ", "I book Rome."],
        "calls": [{"name": "book_train", "arguments": {"city": "Rome", "seats": 1}}],
        "usage": {"input_tokens": 1000, "cached_input_tokens": 850, "output_tokens": 40},
        **_PACE,
    },
    {
        "text": ["Rome is warmer. ", "Your seat is booked: ", "{{results.book_train}}."],
        "usage": {"input_tokens": 1100, "cached_input_tokens": 950, "output_tokens": 20},
        **_PACE,
    },
]


class Travel:
    """The tools, as functions of this process; `booking` is what the last one drew."""

    def __init__(self) -> None:
        self.booking: str | None = None

    @tool(read_only=True)
    async def get_weather(self, city: str) -> str:
        """The weather of a city, now."""
        await anyio.sleep(0.3)  # as long as a real service takes, so that both calls are seen to run at once
        return _WEATHER.get(city, "no station there")

    @tool(read_only=False, idempotent=False)
    async def book_train(self, city: str, seats: int = 1) -> str:
        """Books seats on the next train and returns the number of the booking."""
        await anyio.sleep(0.2)
        self.booking = f"booking {random.randrange(100_000, 1_000_000)}, {seats} seat to {city}"
        return self.booking
