"""What a function learns about its own call, and results that are more than text."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from connectors.fake import FakeConnector
from contract_tests.requirements import requirement
from harness import ImageBlock, LocalHarness, Registry, TextBlock, ToolDescriptor, ToolRegistry, run_to_completion
from harness.contract import ToolCall
from harness.errors import InvalidArgument
from harness.orchestrator.functions import FunctionTools, tools_from
from harness.orchestrator.lines import Line, ProgressLine
from harness.orchestrator.tool_context import CallCancelled, Progress, ToolContext
from harness.orchestrator.tool_provider import ToolOutcome


async def run(function: Any, on_progress: Any = None, **arguments: Any) -> ToolOutcome:
    registry = await ToolRegistry.of([function])
    [descriptor] = registry.descriptors
    call = ToolCall(call_id="7", tool_name=descriptor.name, arguments_json=json.dumps(arguments))
    return await registry.run(call, context=ToolContext("7", descriptor.name, on_progress))


@requirement("orchestrator:functions:context")
async def test_context_is_given_by_annotation_and_the_model_never_sees_it() -> None:
    seen: list[str] = []

    def copy(source: str, context: ToolContext, target: str = "b") -> None:
        seen.append(f"{context.call_id} {context.tool_name} {source} {target}")

    async def look(context: ToolContext | None = None, /, where: str = "x") -> None:
        assert context is not None
        seen.append(f"{context.call_id} {where}")

    [descriptor] = await FunctionTools([copy]).list_tools()
    assert list(json.loads(descriptor.input_schema_json)["properties"]) == ["source", "target"]
    await run(copy, source="a")
    await run(look, where="y")
    assert seen == ["7 copy a b", "7 y"]


@requirement("orchestrator:functions:context")
async def test_progress_is_told_from_the_loop_and_from_a_thread() -> None:
    def in_thread(context: ToolContext) -> None:
        context.progress(1, 2, "half")

    async def in_loop(context: ToolContext) -> None:
        context.progress(3)

    told: list[tuple[Progress, int]] = []

    def tell(step: Progress) -> None:
        told.append((step, threading.get_ident()))

    await run(in_thread, tell)
    await run(in_loop, tell)
    here = threading.get_ident()
    assert told == [(Progress(1, 2, "half"), here), (Progress(3), here)]


@requirement("orchestrator:functions:context")
async def test_function_in_a_thread_learns_that_nobody_waits_any_more() -> None:
    started, left = threading.Event(), threading.Event()
    ends: list[str] = []
    over = threading.Event()

    def work(context: ToolContext) -> None:
        started.set()
        left.wait(5)
        try:
            context.progress(1)
            context.raise_if_cancelled()
        except CallCancelled as error:
            ends.append(str(error))
        over.set()

    told: list[Progress] = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run, work, told.append)
            await anyio.to_thread.run_sync(started.wait, 5)
            group.cancel_scope.cancel()
        left.set()
        await anyio.to_thread.run_sync(over.wait, 5)
    assert (ends, told) == (["call '7' of 'work' was cancelled"], [])


@requirement("orchestrator:functions:context")
async def test_progress_of_a_tool_is_a_line_of_the_run() -> None:
    async def dig(context: ToolContext) -> str:
        context.progress(1, 3, "first spit")
        await anyio.lowlevel.checkpoint()
        return "deep"

    lines: list[Line] = []
    script = [[{"calls": [{"name": "dig", "arguments": {}}]}, {"message": "done"}]]
    async with LocalHarness(Registry({"fake": FakeConnector(script)}), default_connector="fake") as house:
        await run_to_completion(house, "go", tools=[dig], on_line=lines.append)
    [told] = [line for line in lines if isinstance(line, ProgressLine)]
    [call] = [line for line in lines if line.type == "request"]
    assert (told.request_id, told.done, told.total, told.message) == (call.request.request_id, 1, 3, "first spit")


@dataclass
class Weather:
    city: str
    degrees: float


class Report(BaseModel):
    ok: bool


class Loose(TypedDict):
    name: str


@requirement("orchestrator:functions:structured")
async def test_what_is_declared_as_an_object_is_also_structured_content() -> None:
    def weather() -> Weather:
        return Weather("Oslo", -4.5)

    def report() -> Report:
        return Report(ok=True)

    def loose() -> Loose:
        return {"name": "a"}

    def words() -> str:
        return "a"

    expected = {weather: '{"city":"Oslo","degrees":-4.5}', report: '{"ok":true}', loose: '{"name":"a"}'}
    for function, text in expected.items():
        outcome = await run(function)
        assert list(outcome.content) == [TextBlock(text=text)]
        assert outcome.structured_content_json == text
        [descriptor] = await FunctionTools([function]).list_tools()
        assert json.loads(descriptor.output_schema_json or "")["properties"].keys() == json.loads(text).keys()
    assert (await run(words)).structured_content_json is None


@requirement("orchestrator:functions:structured")
async def test_images_may_stand_beside_words() -> None:
    image = ImageBlock(data="AAAA", media_type="image/png")

    def draw() -> list[str | ImageBlock]:
        return ["A dot:", image]

    assert list((await run(draw)).content) == [TextBlock(text="A dot:"), image]


class Shelf:
    """Books."""

    size = 3

    def __init__(self) -> None:
        self.books = ["Emma"]

    @property
    def surprise(self) -> str:
        raise AssertionError("looking must not compute")

    def take(self, title: str) -> str:
        """Takes a book out."""
        self.books.remove(title)
        return f"{title} taken"

    @staticmethod
    def rules() -> str:
        return "quiet"

    def _count(self) -> int:
        return len(self.books)


@requirement("orchestrator:functions:object")
async def test_public_methods_of_an_object_are_tools() -> None:
    shelf = Shelf()
    registry = await ToolRegistry.of([tools_from(shelf)])
    assert [descriptor.name for descriptor in registry.descriptors] == ["rules", "take"]
    outcome = await registry.run(ToolCall(call_id="1", tool_name="take", arguments_json='{"title": "Emma"}'))
    assert list(outcome.content) == [TextBlock(text="Emma taken")]
    assert shelf.books == []
    both = await ToolRegistry.of([tools_from(shelf), tools_from(Shelf(), prefix="b_")])
    assert [descriptor.name for descriptor in both.descriptors] == ["b_rules", "b_take", "rules", "take"]
    with pytest.raises(InvalidArgument, match="'object' has no public method"):
        tools_from(object())


def test_descriptor_of_a_method_describes_it() -> None:
    [descriptor] = [one for one in anyio.run(tools_from(Shelf()).list_tools) if one.name == "take"]
    assert isinstance(descriptor, ToolDescriptor)
    assert descriptor.description == "Takes a book out."
