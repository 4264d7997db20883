"""Messages requests as the contract reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract_tests.requirements import requirement
from harness.contract import Effort, HistoryMessage, ImageBlock, TextBlock, ToolMode
from harness.errors import InvalidArgument
from harness.surfaces.anthropic.request import MessagesRequest, messages_request, read_body
from harness.surfaces.compatible.tips import tip

MARK: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
WEATHER = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}


def read(messages: Any = "Hi", **members: Any) -> MessagesRequest:
    given = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    body = {"model": "fake", "max_tokens": 100, "messages": given, **members}
    return messages_request(read_body(json.loads(json.dumps(body))))


def history(*messages: tuple[str, Any]) -> tuple[HistoryMessage, ...]:
    return read([{"role": role, "content": content} for role, content in messages]).messages


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def call(call_id: str = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "weather", "input": {"city": "Oslo"}, **more}


def result(content: Any, call_id: str = "c1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def image(data: str = "aGk=") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


@requirement("anthropic-surface:history")
def test_results_stand_beside_the_words_that_came_with_them() -> None:
    said, asked, answered = history(
        ("user", "How is Oslo?"),
        ("assistant", [text("I look."), call()]),
        ("user", [result([text("rain"), image()], is_error=True), text("And hurry.")]),
    )

    assert said.content == [TextBlock(text="How is Oslo?")]
    assert [(one.call_id, one.tool_name, one.arguments_json) for one in asked.tool_calls] == [
        ("c1", "weather", '{"city":"Oslo"}')
    ]
    assert answered.content == [TextBlock(text="And hurry.")]
    [given] = answered.tool_results
    assert (given.call_id, given.is_error) == ("c1", True)
    assert given.content == [TextBlock(text="rain"), ImageBlock(data="aGk=", media_type="image/png")]


@requirement("anthropic-surface:history")
def test_a_cache_mark_that_moves_changes_nothing() -> None:
    marked_first = history(
        ("user", [text("Hi", **MARK)]),
        ("assistant", [text("I look."), call()]),
        ("user", [result("rain")]),
    )
    marked_last = history(
        ("user", [text("Hi")]),
        ("assistant", [text("I look."), call(**MARK)]),
        ("user", [result([text("rain", **MARK)], **MARK)]),
    )
    assert tip(marked_first) == tip(marked_last)


@requirement("anthropic-surface:history")
def test_thinking_in_the_history_is_dropped() -> None:
    thoughts = [
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "redacted_thinking", "data": "x"},
    ]
    with_thoughts = history(("user", "Hi"), ("assistant", [*thoughts, text("Yes.")]), ("user", "And?"))
    assert with_thoughts == history(("user", "Hi"), ("assistant", "Yes."), ("user", "And?"))


@requirement("anthropic-surface:history")
def test_words_of_the_system_between_messages_belong_to_the_user_however_they_are_sent() -> None:
    as_blocks = history(("user", "Hi"), ("system", [text("Be kind.", **MARK)]))
    as_text = history(("user", "Hi"), ("system", "Be kind."))
    assert as_blocks == as_text
    [message] = as_text
    assert message.content == [
        TextBlock(text="Hi"),
        TextBlock(text="<system-reminder>\nBe kind.\n</system-reminder>"),
    ]


@requirement("anthropic-surface:history")
def test_the_system_prompt_may_be_blocks_and_a_billing_line_is_none_of_its_words() -> None:
    blocks = [text("x-anthropic-billing-header: cc_version=1;"), text("You are A.", **MARK), text("Be brief.")]
    assert read(system=blocks).system_prompt == "You are A.\n\nBe brief."
    assert read(system="You are A.").system_prompt == "You are A."
    assert read().system_prompt is None


@requirement("anthropic-surface:history")
def test_a_document_is_a_resource() -> None:
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
    plain = {"type": "text", "media_type": "text/plain", "data": "Words."}
    blocks = [{"type": "document", "title": "a.pdf", "source": pdf}, {"type": "document", "source": plain}]
    [message] = history(("user", blocks))
    assert [block.to_dict() for block in message.content] == [
        {"type": "resource", "uri": "document:a.pdf", "media_type": "application/pdf", "data": "aGk="},
        {"type": "resource", "uri": "document:messages.0.content.1", "media_type": "text/plain", "text": "Words."},
    ]


@requirement("anthropic-surface:history")
def test_a_deferred_tool_is_offered_once_it_was_loaded() -> None:
    tools = [WEATHER, {**WEATHER, "name": "later", "defer_loading": True}]
    assert [tool.name for tool in read(tools=tools).tools] == ["weather"]

    by_result = result([{"type": "tool_reference", "tool_name": "later"}])
    by_system = [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "later"}}]
    for loading in ([("user", "Hi"), ("assistant", [call()]), ("user", [by_result])], [("system", by_system)]):
        messages = [{"role": role, "content": content} for role, content in loading]
        request = read(messages, tools=tools)
        assert [tool.name for tool in request.tools] == ["weather", "later"]
        assert "The tool 'later' " in request.messages[-1].to_json()


@requirement("anthropic-surface:meaning")
def test_choices_and_hints_become_the_options_of_the_turn() -> None:
    tools = [WEATHER]

    def options(**members: Any) -> dict[str, Any]:
        return read(tools=tools, **members).options.to_dict()

    assert options() == {"max_output_tokens": 100}
    assert options(tool_choice={"type": "auto"}) == {"max_output_tokens": 100}
    assert options(tool_choice={"type": "none"})["tool_mode"] == ToolMode.NONE
    assert options(tool_choice={"type": "any"})["tool_mode"] == ToolMode.ANY
    assert options(tool_choice={"type": "any", "disable_parallel_tool_use": True})["tool_mode"] == ToolMode.ONE
    forced = options(tool_choice={"type": "tool", "name": "weather"})
    assert (forced["tool_mode"], forced["tool_names"]) == (ToolMode.ANY, ["weather"])
    assert options(output_config={"effort": "max"})["effort"] == Effort.EXTRA_HIGH
    assert options(thinking={"type": "enabled", "budget_tokens": 2048})["effort"] == Effort.LOW
    assert options(thinking={"type": "adaptive"}) == {"max_output_tokens": 100}
    schema = {"type": "object"}
    wanted = options(output_config={"format": {"type": "json_schema", "schema": schema}})
    assert json.loads(wanted["output_schema_json"]) == schema


@requirement("anthropic-surface:meaning")
def test_hints_that_reach_nobody_are_named_once_each() -> None:
    request = read(
        top_p=0.5,
        metadata={"user_id": "me"},
        cache_control={"type": "ephemeral"},
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        tools=[{**WEATHER, "strict": True, **MARK}, {**WEATHER, "name": "clock", "strict": True}],
        output_config={"effort": "ludicrous"},
    )
    assert sorted(request.ignored) == [
        "metadata",
        "output_config.effort",
        "tool_choice.disable_parallel_tool_use",
        "tools.strict",
        "top_p",
    ]


@requirement("anthropic-surface:meaning")
@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"max_tokens": "many"}, "'max_tokens'"),
        ({"messages": [{"role": "wizard", "content": "Hi"}]}, "'messages.0.role'"),
        ({"stop_sequences": ["x"]}, "'stop_sequences'"),
        ({"mcp_servers": [{"type": "url"}]}, "'mcp_servers'"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search_20250305"),
        ({"tools": [{"name": "weather"}]}, "'tools.0.input_schema'"),
        ({"tools": [{**WEATHER, "name": "a.b"}]}, "'tools.0.name'"),
        ({"tool_choice": {"type": "tool", "name": "clock"}}, "'tool_choice.name'"),
        ({"output_config": {"format": {"type": "yaml"}}}, "'output_config.format'"),
        ({"messages": [{"role": "assistant", "content": "Well,"}]}, "the last message is the assistant's"),
        ({"messages": [{"role": "user", "content": ""}]}, "the last message is empty"),
        ({"messages": [{"role": "user", "content": [{"type": "audio"}]}]}, "'messages.0.content.0'"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "'messages.0.content.0.text'"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]}]},
            "'messages.0.content.0.source'",
        ),
        (
            {"messages": [{"role": "user", "content": [result([{"type": "video"}])]}]},
            "'messages.0.content.0.content.0'",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_place(members: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read(**members)
    assert place in refused.value.message


@requirement("anthropic-surface:events")
@pytest.mark.parametrize(
    ("thinking", "shown"),
    [
        (None, False),
        ({"type": "disabled"}, False),
        ({"type": "enabled", "budget_tokens": 2048}, True),
        ({"type": "adaptive", "display": "updates"}, True),
        ({"type": "adaptive", "display": "omitted"}, False),
    ],
)
def test_thinking_is_shown_to_those_who_asked(thinking: dict[str, Any] | None, shown: bool) -> None:
    assert read(**({"thinking": thinking} if thinking else {})).shows_thinking is shown
