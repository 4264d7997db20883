"""Tasks that show whether a model can call tools: what it is told, what the tools answer, what a success is (pure).

The same behaviours that the scenarios try with a scripted model, for a real one. Names and schemas of some tools are
made up at run time, so that no model can know them.
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from harness.contract.tools import ToolDescriptor

Arguments: TypeAlias = Mapping[str, Any]
ERROR = "Error: "


@dataclass(frozen=True)
class Made:
    """What a model made of a task."""

    calls: Sequence[tuple[str, Arguments]]
    """In the order they were opened; arguments that did not fit their schema never came here."""
    rounds: Sequence[int]
    """How many calls were open together, per round."""
    text: str
    structured: Arguments = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Task:
    """`answer` gives a tool's result; one that begins with `Error: ` is an error."""

    name: str
    message: str
    tools: Sequence[ToolDescriptor]
    is_success: Callable[[Made], bool]
    answer: Callable[[str, Arguments], str] = field(default=lambda name, arguments: "done")
    output_schema_json: str | None = None


def tool(tool_name: str, description: str, /, **properties: Any) -> ToolDescriptor:
    """All properties are required."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return ToolDescriptor(name=tool_name, description=description, input_schema_json=json.dumps(schema))


WEATHER = tool("get_weather", "The weather in a city.", city={"type": "string", "maxLength": 40})
CLOCK = tool("current_time", "The time of day.")
FIND = tool("find_customer", "Finds the number of a customer by name.", name={"type": "string", "maxLength": 40})
BALANCE = tool("get_balance", "The balance of a customer by number.", number={"type": "integer"})
EVENT = tool(
    "add_event",
    "Adds an event to the calendar.",
    title={"type": "string", "maxLength": 60},
    date={"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
    guests={"type": "array", "items": {"type": "string", "maxLength": 30}, "maxItems": 5},
)


def standing_tasks() -> list[Task]:
    """The tasks whose tools are always the same."""
    return [
        Task("no-tool", "What is 2 + 2? Answer with the number only.", [WEATHER, CLOCK], lambda made: not made.calls),
        Task(
            "one-call",
            "What is the weather in Oslo?",
            [WEATHER, CLOCK],
            lambda made: _cities(made) == ["oslo"] and "17" in made.text,
            lambda name, arguments: "17 degrees, rain",
        ),
        Task(
            "parallel-calls",
            "What is the weather in Oslo and in Rome? Look up both at once.",
            [WEATHER],
            lambda made: sorted(_cities(made)) == ["oslo", "rome"] and max(made.rounds, default=0) == 2,
            lambda name, arguments: "17 degrees" if "oslo" in str(arguments).lower() else "31 degrees",
        ),
        Task(
            "tool-error",
            "What is the weather in Oslo?",
            [WEATHER],
            lambda made: bool(made.calls) and "17" not in made.text and bool(made.text.strip()),
            lambda name, arguments: f"{ERROR}the weather service is down",
        ),
        Task(
            "two-rounds",
            "What is the balance of the customer named Anna? First find her number.",
            [FIND, BALANCE],
            lambda made: (
                [name for name, _ in made.calls] == ["find_customer", "get_balance"]
                and made.calls[1][1].get("number") == 4711
                and "250" in made.text
            ),
            lambda name, arguments: "number 4711" if name == "find_customer" else "250 EUR",
        ),
        Task(
            "no-arguments",
            "What time is it?",
            [CLOCK, WEATHER],
            lambda made: list(made.calls) == [("current_time", {})] and "12:34" in made.text,
            lambda name, arguments: "12:34",
        ),
        Task(
            "nested-arguments",
            "Put 'Lunch' on the calendar for 2030-05-17 with Ann and Bob.",
            [EVENT, WEATHER],
            lambda made: (
                [(name, _event(arguments)) for name, arguments in made.calls]
                == [("add_event", ("lunch", "2030-05-17", ["ann", "bob"]))]
            ),
        ),
        Task(
            "structured-answer",
            "Name the capital of Norway.",
            [],
            lambda made: str(made.structured.get("capital")).lower() == "oslo",
            output_schema_json='{"type":"object","properties":{"capital":{"type":"string"}},"required":["capital"]}',
        ),
    ]


def made_up_tasks(chance: random.Random, tools: int = 10, prompts: int = 30) -> list[Task]:
    """Prompts about tools that nobody has heard of: half of them need one, the others none."""
    words = [_word(chance) for _ in range(tools)]
    offered = [
        tool(f"{chance.choice(('run', 'do', 'make'))}_{word}", f"Makes one {word}.", **_properties(chance))
        for word in words
    ]
    tasks: list[Task] = []
    for number in range(prompts):
        if number % 2:
            question = chance.choice(_QUESTIONS)
            tasks.append(Task("made-up-none", question, offered, lambda made: not made.calls))
        else:
            place = chance.randrange(tools)
            tasks.append(_made_up_call(words[place], offered, offered[place].name))
    return tasks


_QUESTIONS = (
    "Who are you?",
    "What is the colour of the sky?",
    "Say hello.",
    "What is 2 + 2?",
    "Name an animal that lives in the sea.",
)


def _made_up_call(word: str, offered: Sequence[ToolDescriptor], name: str) -> Task:
    return Task(
        "made-up-call",
        f"Please make one {word} for me; choose any arguments you like.",
        offered,
        lambda made: [called for called, _ in made.calls] == [name],
    )


def _properties(chance: random.Random) -> dict[str, Any]:
    kinds: list[Any] = [
        {"type": "string", "maxLength": 20},
        {"type": "integer", "minimum": 0, "maximum": 99},
        {"type": "boolean"},
        {"enum": ["low", "high"]},
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    ]
    return {_word(chance): chance.choice(kinds) for _ in range(chance.randint(0, 3))}


def _word(chance: random.Random) -> str:
    return "".join(chance.choice(pair) for pair in ("bdfgklmnprstvz", "aeiou") * 3) + chance.choice(
        string.ascii_lowercase
    )


def _cities(made: Made) -> list[str]:
    return [str(arguments.get("city", "")).lower() for name, arguments in made.calls if name == "get_weather"]


def _event(arguments: Arguments) -> tuple[str, str, list[str]]:
    guests = [str(guest).lower() for guest in arguments.get("guests", [])]
    return str(arguments.get("title", "")).lower(), str(arguments.get("date", "")), sorted(guests)
