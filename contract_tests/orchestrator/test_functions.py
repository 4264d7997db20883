"""Python functions as tools: what the model is told about them, and what it gets back."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial, wraps
from typing import Annotated, Any, Literal, Optional

import anyio
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from contract_tests.orchestrator.puppet import settle
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness import tool
from harness.contract import ImageBlock, TextBlock, ToolCall, ToolDescriptor
from harness.errors import InvalidArgument
from harness.orchestrator.functions import FunctionTools
from harness.orchestrator.refusals import RefusalKind
from harness.orchestrator.tool_context import ToolContext
from harness.orchestrator.tool_provider import ToolOutcome


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


@dataclass
class Place:
    city: str
    country: str = "NO"


class Window(BaseModel):
    """A span of days."""

    start: date
    days: int = 1


class Extras(TypedDict):
    wind: bool


async def described(function: Callable[..., Any]) -> ToolDescriptor:
    [descriptor] = await FunctionTools([function]).list_tools()
    return descriptor


async def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    return json.loads((await described(function)).input_schema_json)


async def run(function: Callable[..., Any], **arguments: Any) -> ToolOutcome:
    tools = FunctionTools([function])
    [descriptor] = await tools.list_tools()
    call = ToolCall(call_id="1", tool_name=descriptor.name, arguments_json=json.dumps(arguments))
    return await tools.run(call, ToolContext("1", descriptor.name))


async def text_of_run(function: Callable[..., Any], **arguments: Any) -> str:
    outcome = await run(function, **arguments)
    [block] = outcome.content
    assert isinstance(block, TextBlock)
    return block.text


@requirement("orchestrator:functions:schema")
async def test_signature_docstring_and_annotations_become_the_schema() -> None:
    def forecast(
        place: Place,
        unit: Unit,
        detail: Literal["short", "long"] = "short",
        window: Optional[Window] = None,  # noqa: UP045 - the older form is what people have
        tags: list[str] = [],  # noqa: B006
        limits: dict[str, int] | None = None,
        extras: Extras | None = None,
        share: Annotated[float, Field(ge=0, le=1, description="How much of it.")] = 1.0,
        note: Annotated[str, "For people."] = "",
        implicit: str = None,  # type: ignore[assignment]  # noqa: RUF013
    ) -> str:
        """Tells the weather.

        Of one place.

        Args:
            place: Where.
            unit: Of the temperature.

        Returns:
            One sentence.
        """
        return ""

    descriptor = await described(forecast)
    assert descriptor.description == "Tells the weather.\n\nOf one place.\n\nReturns: One sentence."
    schema = json.loads(descriptor.input_schema_json)
    assert schema["type"] == "object"
    assert schema["required"] == ["place", "unit"]
    assert schema["additionalProperties"] is False
    assert "title" not in schema
    properties = schema["properties"]
    assert list(properties) == [
        "place", "unit", "detail", "window", "tags", "limits", "extras", "share", "note", "implicit",
    ]  # fmt: skip
    assert properties["place"] == {"$ref": "#/$defs/Place", "description": "Where."}
    assert schema["$defs"]["Unit"]["enum"] == ["c", "f"]
    assert properties["detail"] == {"enum": ["short", "long"], "type": "string", "default": "short"}
    assert properties["window"]["anyOf"][0] == {"$ref": "#/$defs/Window"}
    assert properties["share"] == {
        "type": "number", "minimum": 0, "maximum": 1, "default": 1.0, "description": "How much of it.",
    }  # fmt: skip
    assert properties["note"]["description"] == "For people."
    assert {"type": "null"} in properties["implicit"]["anyOf"]
    assert schema["$defs"]["Extras"]["required"] == ["wind"]


@requirement("orchestrator:functions:schema")
@pytest.mark.parametrize(
    "docstring",
    [
        "Adds.\n\nArgs:\n    a: first\n    b: second\n",
        "Adds.\n\nParameters\n----------\na : int\n    first\nb : int\n    second\n",
        "Adds.\n\n:param a: first\n:param b: second\n",
    ],
    ids=["google", "numpy", "rest"],
)
async def test_each_docstring_style_describes_the_parameters(docstring: str) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    add.__doc__ = docstring
    descriptor = await described(add)
    assert descriptor.description == "Adds."
    properties = json.loads(descriptor.input_schema_json)["properties"]
    assert [properties[name]["description"] for name in ("a", "b")] == ["first", "second"]


async def test_function_without_parameters_has_an_object_schema_with_properties() -> None:
    def now() -> str:
        return "noon"

    assert await schema_of(now) == {"type": "object", "properties": {}, "additionalProperties": False}


async def test_parameters_may_have_names_that_pydantic_keeps_for_itself() -> None:
    def search(schema: str, model_config: int, copy: bool = True, _hidden: str = "x") -> list[Any]:
        return [schema, model_config, copy, _hidden]

    assert list((await schema_of(search))["properties"]) == ["schema", "model_config", "copy", "_hidden"]
    assert await text_of_run(search, schema="s", model_config=1) == '["s",1,true,"x"]'


async def test_default_that_json_cannot_show_is_kept() -> None:
    def wait(seconds: float = float("inf")) -> str:
        return str(seconds)

    assert "default" not in (await schema_of(wait))["properties"]["seconds"]
    assert await text_of_run(wait) == "inf"


async def test_arguments_arrive_as_the_types_the_function_names() -> None:
    def look(place: Place, unit: Unit, window: Window, extras: Extras, pair: tuple[int, int]) -> list[str]:
        return [type(value).__name__ for value in (place, unit, window, window.start, extras, pair)]

    text = await text_of_run(
        look, place={"city": "Oslo"}, unit="c", window={"start": "2024-02-29"}, extras={"wind": True}, pair=[1, 2]
    )
    assert json.loads(text) == ["Place", "Unit", "Window", "date", "dict", "tuple"]


async def test_positional_only_and_keyword_only_parameters_are_bound() -> None:
    def mixed(first: int, /, second: int, *, third: int = 3) -> list[int]:
        return [first, second, third]

    assert await text_of_run(mixed, first=1, second=2) == "[1,2,3]"


@requirement("orchestrator:functions:hints")
async def test_mark_names_the_tool_and_says_what_it_does() -> None:
    @tool(name="read-weather", read_only=True, destructive=False, idempotent=True, open_world=True)
    def weather() -> str:
        return "sun"

    @tool
    def plain() -> str:
        return "x"

    descriptor = await described(weather)
    hints = (descriptor.read_only, descriptor.destructive, descriptor.idempotent, descriptor.open_world)
    assert (descriptor.name, hints) == ("read-weather", (True, False, True, True))
    assert weather() == "sun"
    assert (await described(plain)).name == "plain"


@requirement("orchestrator:functions:hints")
def test_marking_a_tool_loads_neither_pydantic_nor_anyio() -> None:
    program = "import sys; from harness import tool; print({'pydantic', 'anyio'} & set(sys.modules))"
    finished = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    assert finished.stdout == "set()\n"


@requirement("orchestrator:functions:hints")
async def test_function_without_a_mark_is_not_read_only() -> None:
    def weather() -> str:
        return "sun"

    descriptor = await described(weather)
    assert descriptor.read_only is None


@requirement("orchestrator:functions:results")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is: ø\n", "as it is: ø\n"),
        (None, "null"),
        (True, "true"),
        (12345678901234567890123, "12345678901234567890123"),
        (0.1, "0.1"),
        ({"b": 1, "a": [None, "ø"]}, '{"b":1,"a":[null,"\\u00f8"]}'),
        (("x", 1), '["x",1]'),
        (Unit.CELSIUS, '"c"'),
        (Place("Oslo"), '{"city":"Oslo","country":"NO"}'),
        (Window(start=date(2024, 2, 29)), '{"start":"2024-02-29","days":1}'),
        ({"half \ud800": 1}, '{"half \\ud800":1}'),
        ("half \ud800", "half \ufffd"),
        ([], "[]"),
    ],
)
async def test_result_is_text_as_it_is_or_compact_json(value: Any, text: str) -> None:
    def give() -> Any:
        return value

    assert await text_of_run(give) == text


@requirement("orchestrator:functions:results")
async def test_content_blocks_pass_through() -> None:
    image = ImageBlock(data="aGk=", media_type="image/png")

    def picture() -> ImageBlock:
        return image

    def captioned() -> list[Any]:
        return [TextBlock(text="look"), image]

    assert list((await run(picture)).content) == [image]
    assert list((await run(captioned)).content) == [TextBlock(text="look"), image]


@requirement("orchestrator:functions:results")
@pytest.mark.parametrize("value", [float("nan"), {1.5: object()}, object()], ids=["nan", "nested object", "object"])
async def test_result_that_json_cannot_carry_is_an_error_that_says_so(value: Any) -> None:
    def give() -> Any:
        return value

    outcome = await run(give)
    assert outcome.is_error
    assert "JSON cannot carry" in outcome.content[0].text  # type: ignore[union-attr]


@requirement("orchestrator:functions:errors-are-data")
@pytest.mark.parametrize("error", [KeyError("city"), SystemExit(3), ValueError("half \ud800")], ids=repr)
async def test_exception_is_an_error_result_without_a_stack_trace(error: BaseException) -> None:
    def fail() -> str:
        raise error

    async def fail_later() -> str:
        raise error

    for function in (fail, fail_later):
        outcome = await run(function)
        [block] = outcome.content
        assert outcome.is_error
        assert isinstance(block, TextBlock)
        assert block.text.startswith(f"{type(error).__name__}: ")
        assert "Traceback" not in block.text
        assert "test_functions" not in block.text


@requirement("orchestrator:arguments:actionable")
async def test_value_that_only_the_type_refuses_is_invalid_arguments() -> None:
    def on(day: date) -> str:
        return str(day)

    outcome = await run(on, day="2024-02-30")
    assert outcome.is_error
    assert outcome.refusal is not None
    assert outcome.refusal.kind == RefusalKind.INVALID_ARGUMENTS
    assert "'day'" in outcome.refusal.text


@requirement("orchestrator:functions:threads")
async def test_sync_function_runs_beside_the_loop_with_its_context() -> None:
    who: ContextVar[str] = ContextVar("who")
    who.set("me")
    release = threading.Event()

    def block() -> list[Any]:
        return [release.wait(5), threading.current_thread() is threading.main_thread(), who.get()]

    texts: list[str] = []

    async def call() -> None:
        texts.append(await text_of_run(block))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await settle()
            release.set()
    assert texts == ['[true,false,"me"]']


@requirement("orchestrator:functions:threads")
async def test_async_function_behind_a_plain_wrapper_is_awaited() -> None:
    async def inner(x: int) -> int:
        await anyio.lowlevel.checkpoint()
        return x + 1

    @wraps(inner)
    def wrapped(x: int) -> Any:
        return inner(x)

    assert await text_of_run(wrapped, x=1) == "2"


@requirement("orchestrator:functions:never-returns")
async def test_cancelled_sync_function_is_left_behind_at_once() -> None:
    entered, release = threading.Event(), threading.Event()

    def stuck() -> None:
        entered.set()
        release.wait(10)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run, stuck)
            await anyio.to_thread.run_sync(entered.wait)
            group.cancel_scope.cancel()
    release.set()


@requirement("orchestrator:functions:never-returns")
def test_function_that_never_returns_does_not_keep_the_process_alive() -> None:
    program = """
import anyio, threading
from harness.orchestrator.functions import FunctionTools
from harness.contract import ToolCall
from harness.orchestrator.tool_context import ToolContext

def stuck():
    threading.Event().wait()

async def main():
    with anyio.move_on_after(0.1):
        await FunctionTools([stuck]).run(ToolCall(call_id="1", tool_name="stuck"), ToolContext("1", "stuck"))
    print("left")

anyio.run(main)
"""
    finished = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert (finished.returncode, finished.stdout) == (0, "left\n"), finished.stderr


@requirement("orchestrator:functions:bad-signature")
async def test_function_that_cannot_be_described_is_named_with_its_parameter() -> None:
    def many(*cities: str) -> None: ...

    def opaque(what: threading.Thread) -> None: ...

    def unknown(what: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    for function, words in (
        (many, ("'many'", "'*cities'")),
        (opaque, ("'opaque'", "'what'")),
        (unknown, ("'unknown'", "Nowhere")),
        (lambda: None, ("<lambda>", "@tool(name=")),
        (partial(many), ("@tool(name=",)),
    ):
        with pytest.raises(InvalidArgument) as caught:
            FunctionTools([function])
        assert all(word in caught.value.message for word in words), caught.value.message
        assert "\n" not in caught.value.message


async def test_partial_and_bound_method_are_tools() -> None:
    class Station:
        def __init__(self, name: str) -> None:
            self.name = name

        def report(self, hour: int) -> str:
            """Reports."""
            return f"{self.name} {hour}"

    def add(a: int, b: int) -> int:
        return a + b

    assert await text_of_run(Station("Blindern").report, hour=9) == "Blindern 9"
    assert await text_of_run(tool(name="add_one")(partial(add, 1)), b=2) == "3"
