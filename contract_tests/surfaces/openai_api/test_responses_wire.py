"""The Responses API itself: events, ends, usage, errors, options and items, as the `openai` package reads them."""

from __future__ import annotations

import json
from typing import Any

import anyio
import openai
import pytest
from pydantic import BaseModel

from contract_tests.requirements import requirement
from contract_tests.surfaces.http import client_of
from contract_tests.surfaces.openai_api.chat import Place, open_place
from contract_tests.surfaces.openai_api.responses import (
    CLOCK,
    WEATHER,
    calls_of,
    outputs,
    strictly,
    talker,
)
from harness.contract import ImageBlock, ResourceBlock, TextBlock, text_of
from harness.wire.sse import SseReader

HELLO: list[Any] = [{"text": "Hello."}]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"}
BODY: Any = {"model": "fake", "input": "Go."}
LONG: list[Any] = [
    {"thinking": ["Well. ", "Yes."], "item_id": "t1"},
    {"text": ["I will ", "look."], "item_id": "m1"},
    {"thinking": "Hm.", "item_id": "t2"},
    {"text": "Wrong", "item_id": "m2"},
    {"discard": "m2"},
    {"message": "Right.", "item_id": "m3"},
    {"usage": {"input_tokens": 10, "output_tokens": 5, "cached_input_tokens": 4, "reasoning_tokens": 3}},
    {"calls": [{"name": "weather", "arguments": {"city": "Oslo"}, "id": "oslo"}, {"name": "weather", "id": "rome"}]},
    HELLO[0],
]
SCHEMA: Any = {"type": "object", "properties": {"city": {"type": "string"}}}


async def events_of(place: Place, body: Any) -> list[Any]:
    """The stream as it is on the wire, every event as strict as the package's types."""
    reader = SseReader()
    events: list[Any] = []
    async with (
        client_of(place.server) as client,
        client.stream("POST", "/openai/v1/responses", json={**body, "stream": True}) as response,
    ):
        async for chunk in response.aiter_bytes():
            for sent in reader.feed(chunk):
                event = json.loads(sent.data)
                assert sent.event == event["type"]
                events.append(strictly(event))
    assert [event.sequence_number for event in events] == [*range(len(events))]
    return events


# --- events ----------------------------------------------------------------------------------------------------------


SAID = ["output_item.added", "content_part.added", "output_text.delta"]
SAID_DONE = ["output_text.done", "content_part.done", "output_item.done"]
THOUGHT = ["output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"]
THOUGHT_DONE = ["reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"]
CALLED = [
    "output_item.added",
    "function_call_arguments.delta",
    "function_call_arguments.done",
    "output_item.done",
]


@requirement("responses:events")
async def test_a_stream_has_every_event_in_the_order_of_the_api() -> None:
    async with open_place([LONG]) as place:
        events = await events_of(
            place, {**BODY, "tools": [WEATHER], "instructions": "Be brief.", "metadata": {"a": "b"}}
        )

    assert [event.type.removeprefix("response.") for event in events] == [
        *("created", "in_progress"),
        *(*THOUGHT, "reasoning_summary_text.delta", *THOUGHT_DONE),
        *(*SAID, "output_text.delta", *SAID_DONE),
        *(*THOUGHT, *THOUGHT_DONE),
        *(*SAID, "output_text.delta", *SAID_DONE),
        *(*SAID, *SAID_DONE),
        *(*CALLED, *CALLED),
        "completed",
    ]
    done = [event.item for event in events if event.type == "response.output_item.done"]
    places = [event.output_index for event in events if event.type == "response.output_item.done"]
    assert places == [*range(len(done))]
    assert len({item.id for item in done}) == len(done)
    last = events[-1].response
    # what the agent took back has been streamed, and does not count
    assert [item.id for item in last.output] == [
        item.id for item in done if getattr(item, "status", "") != "incomplete"
    ]
    assert last.output_text.split() == ["I", "will", "look.", "Right."]
    assert (last.status, last.instructions, last.metadata) == ("completed", "Be brief.", {"a": "b"})
    assert calls_of(last) == [("oslo", "weather", '{"city":"Oslo"}'), ("rome", "weather", "{}")]


@requirement("responses:events")
async def test_the_packages_stream_ends_with_what_comes_in_one_piece() -> None:
    async with open_place([LONG]) as place:
        client = place.client()
        async with client.responses.stream(**BODY, tools=[WEATHER]) as stream:
            streamed = await stream.get_final_response()
        whole = await client.responses.create(**BODY, tools=[WEATHER])
        answer = outputs({"oslo": "rain", "rome": "sun"})
        hello = await client.responses.create(model="fake", input=answer, previous_response_id=whole.id)

    assert _without_parsed(streamed.to_dict()) == whole.to_dict()
    assert hello.output_text == "Hello."
    assert place.count("opened") == 1


def _without_parsed(value: Any) -> Any:
    """What the package's helper adds to a response left out."""
    if isinstance(value, dict):
        return {name: _without_parsed(one) for name, one in value.items() if not name.startswith("parsed")}
    return [*map(_without_parsed, value)] if isinstance(value, list) else value


@requirement("responses:events")
async def test_what_was_thought_and_taken_back_leaves_the_conversation_where_it_is() -> None:
    async with open_place([[step for step in LONG if "calls" not in step], HELLO]) as place:
        talk = talker(place, stream=True)
        await talk.say("Go.")
        await talk.say("And now?")

    assert place.count("opened") == 1


# --- ends ------------------------------------------------------------------------------------------------------------


@requirement("responses:ends")
@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("end_turn", None),
        ("max_tokens", "max_output_tokens"),
        ("max_turns", "max_output_tokens"),
        ("budget", "max_output_tokens"),
        ("refusal", "content_filter"),
    ],
)
async def test_ends_have_the_apis_reasons(end: str, reason: str | None) -> None:
    async with open_place([[{"text": "So far."}, {"end": end}]]) as place:
        whole = await place.client().responses.create(**BODY)
        events = await events_of(place, BODY)

    status = "completed" if reason is None else "incomplete"
    message: Any = whole.output[0]
    assert (whole.status, message.status, whole.output_text) == (status, status, "So far.")
    assert (whole.incomplete_details and whole.incomplete_details.reason) == reason
    assert events[-1].type == f"response.{status}"
    assert events[-1].response.to_dict() == whole.to_dict()


@requirement("responses:ends")
async def test_usage_is_that_of_the_one_response() -> None:
    script: list[Any] = [
        {"usage": {"input_tokens": 10, "output_tokens": 2, "cached_input_tokens": 4}},
        {"calls": [{"name": "weather", "id": "oslo"}]},
        {"usage": {"input_tokens": 25, "output_tokens": 7, "cached_input_tokens": 9, "reasoning_tokens": 3}},
    ]
    async with open_place([script, []]) as place:
        talk = talker(place)
        first = await talk.say("Go.")
        second = await talk.answer({"oslo": "rain"}, stream=True)
        silent = await talk.say("And?")

    assert first.usage is not None and second.usage is not None
    assert (first.usage.input_tokens, first.usage.output_tokens, first.usage.total_tokens) == (10, 2, 12)
    assert second.usage.to_dict() == {
        "input_tokens": 15,
        "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 20,
    }
    assert (silent.usage, silent.output_text, place.count("opened")) == (None, "", 1)


@requirement("responses:ends")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        ({"code": "provider_error", "detail": {"reason": "rate_limit"}}, openai.RateLimitError, "rate_limit_exceeded"),
        ({"code": "context_overflow"}, openai.BadRequestError, "context_length_exceeded"),
        ({"code": "peer_lost"}, openai.InternalServerError, "peer_lost"),
    ],
)
async def test_a_turn_that_fails_at_once_is_an_error_of_the_package(
    error: dict[str, Any], kind: type[openai.APIStatusError], code: str, stream: bool
) -> None:
    async with open_place([[{"error": {**error, "message": "It rains."}}]]) as place:
        with pytest.raises(kind, match="It rains") as failed:
            await place.client().responses.create(**BODY, stream=stream)

    assert failed.value.code == code


@requirement("responses:ends")
@pytest.mark.parametrize(
    ("error", "code", "ours"),
    [
        ({"code": "provider_error", "detail": {"reason": "rate_limit"}}, "rate_limit_exceeded", None),
        ({"code": "peer_lost"}, "server_error", "peer_lost"),
    ],
)
async def test_a_turn_that_fails_in_the_middle_is_a_failed_response(
    error: dict[str, Any], code: str, ours: str | None
) -> None:
    go_on = anyio.Event()
    script = [{"text": "one"}, {"until": go_on}, {"error": {**error, "message": "It rains."}}]
    async with open_place([script]) as place:
        stream: Any = await place.client().responses.create(**BODY, stream=True)
        await anext(stream)
        go_on.set()
        failed = await collected_rest(stream)

    assert failed.status == "failed"
    assert (failed.error.code, failed.error.type, failed.error.message) == (code, ours, "It rains.")
    assert failed.output_text == "one"


async def collected_rest(stream: Any) -> Any:
    return [strictly(event.to_dict()) async for event in stream][-1].response


@requirement("responses:ends")
async def test_a_server_that_stops_fails_the_open_response() -> None:
    async with open_place([[{"text": "one"}, {"hang": True}]]) as place:
        stream: Any = await place.client().responses.create(**BODY, stream=True)
        await anext(stream)
        place.server.waiters.settle()
        failed = await collected_rest(stream)

    assert failed.status == "failed"
    assert "stopping" in failed.error.message


@requirement("responses:ends")
async def test_responses_are_not_kept_and_it_is_said_what_can_be_done() -> None:
    async with open_place([HELLO]) as place:
        client = place.client()
        told = await client.responses.create(**BODY)
        for ask in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
            with pytest.raises(openai.NotFoundError, match="previous_response_id") as refused:
                await ask(told.id)
            assert refused.value.code == "response_not_found"


# --- what is asked ---------------------------------------------------------------------------------------------------


@requirement("responses:meaning")
@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
        ({"tools": [WEATHER, {"type": "file_search", "vector_store_ids": ["vs"]}]}, "tools.1.type"),
        ({"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}, "tools.0.type"),
        ({"tools": [{"type": "mcp", "server_label": "x", "server_url": "https://example.org"}]}, "tools.0.type"),
        ({"tools": [{"type": "custom", "name": "apply_patch"}]}, "tools.0.type"),
        (
            {
                "tools": [
                    {"type": "namespace", "name": "n", "description": "", "tools": [{"type": "custom", "name": "c"}]}
                ]
            },
            "tools.0.tools.0.type",
        ),
        ({"tools": [{"type": "function", "name": "no spaces please"}]}, "tools.0.name"),
        ({"tool_choice": "required", "tools": [WEATHER]}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "weather"}, "tools": [WEATHER]}, "tool_choice"),
        ({"tool_choice": "none", "tools": [WEATHER]}, "tool_choice"),
        ({"tool_choice": {"type": "web_search_preview"}}, "tool_choice"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
        ({"reasoning": {"effort": "enormous"}}, "reasoning.effort"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"input": []}, "input"),
        ({"input": [{"role": "assistant", "content": "x"}]}, "input"),
        ({"input": [{"role": "narrator", "content": "x"}]}, "input.0.message.role"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input.0"),
        ({"input": [{"id": "msg_1"}]}, "input.0"),
        ({"input": [{"type": "web_search_call", "id": "ws_1", "status": "completed"}]}, "input.0.type"),
    ],
)
async def test_what_would_change_the_answer_and_reaches_nobody_is_a_400(options: dict[str, Any], param: str) -> None:
    plain = {"turns": [HELLO], "capabilities": {"turn_options": [], "structured_output": "none"}}
    async with open_place(plain) as place:
        with pytest.raises(openai.BadRequestError) as refused:
            await place.client().responses.create(**{**BODY, **options})

    assert refused.value.param == param
    assert place.count("opened") == 0


@requirement("responses:meaning")
async def test_hints_that_reach_nobody_are_named() -> None:
    hints: dict[str, Any] = {
        "temperature": 0.1,
        "top_p": 0.5,
        "max_output_tokens": 50,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "low"},
        "truncation": "auto",
        "user": "u",
        "prompt_cache_key": "k",
        "store": True,
        "tools": [{**WEATHER, "strict": True}],
        "include": ["reasoning.encrypted_content"],
        "extra_body": {"client_metadata": {"a": "b"}},
    }
    async with open_place({"turns": [HELLO], "repeat": True, "capabilities": {"turn_options": []}}) as place:
        talk = talker(place, **hints)
        told = await talk.say("Go.")
    async with open_place([HELLO]) as able:
        other = talker(
            able, temperature=0.1, max_output_tokens=50, reasoning={"effort": "max"}, store=False, truncation="disabled"
        )
        await other.say("Go.")

    assert talk.ignored is not None
    assert set(talk.ignored.split(", ")) == {
        *("temperature", "top_p", "max_output_tokens", "reasoning.effort", "text.verbosity", "truncation", "user"),
        *("prompt_cache_key", "store", "tools.strict", "client_metadata"),
    }
    assert other.ignored is None
    assert (told.max_output_tokens, told.truncation) == (50, "disabled")


@requirement("responses:content")
async def test_items_arrive_as_they_are() -> None:
    script: list[Any] = [{"calls": [{"name": "weather", "id": "a"}, {"name": "clock", "id": "b"}]}, *HELLO]
    able = {"turns": [script], "capabilities": {"documents_in_prompt": ["application/pdf"]}}
    async with open_place(able) as place:
        talk = talker(place, instructions="Be brief.", tools=[WEATHER, CLOCK])
        talk.items = [
            {"role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
            {"type": "message", "role": "system", "content": "Be quick."},
        ]
        await talk.say(
            [
                {"type": "input_text", "text": "What is this?"},
                PICTURE,
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
            ]
        )
        await talk.send(
            *outputs({"b": [{"type": "input_text", "text": "see"}, PICTURE], "a": "rain\u2028"}),
            {"role": "user", "content": "Hurry."},
        )

    [opened] = place.connector.opened
    assert opened.system_prompt == "Be brief.\n\nBe kind.\n\nBe quick."
    [message] = [one.value for one in place.peer.seen if one.what == "message"]
    image = ImageBlock(data=PIXEL, media_type="image/png")
    document = ResourceBlock(uri="file:a.pdf", media_type="application/pdf", data="AAAA")
    assert message == (TextBlock(text="What is this?"), image, document)
    assert {one.request_id: one.content for one in place.peer.answers} == {
        "b": [TextBlock(text="see"), image],
        "a": [TextBlock(text="rain\u2028"), TextBlock(text="Hurry.")],
    }


@requirement("responses:content")
async def test_what_was_thought_before_is_left_out_of_a_history() -> None:
    async with open_place([HELLO]) as place:
        talk = talker(place)
        talk.items = [
            {"role": "user", "content": "How is Oslo?"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "x", "name": "weather", "arguments": '{"city": "Oslo"}'},
            {"type": "function_call_output", "call_id": "x", "output": "rain"},
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [
                    {"type": "output_text", "text": "Rain.", "annotations": []},
                    {"type": "refusal", "refusal": " No more."},
                ],
            },
            {"role": "developer", "content": "Be brief."},
        ]
        await talk.say("And Rome?")

    [opened] = place.connector.opened
    assert [(one.role, len(one.tool_calls), len(one.tool_results), text_of(one.content)) for one in opened.history] == [
        ("user", 0, 0, "How is Oslo?"),
        ("assistant", 1, 0, ""),
        ("user", 0, 1, ""),
        ("assistant", 0, 0, "Rain.\n No more."),
    ]
    assert place.messages == [["Be brief.", "And Rome?"]]


@requirement("responses:content")
@pytest.mark.parametrize(
    ("part", "where"),
    [
        ({"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"}, ".image_url"),
        ({"type": "input_image", "file_id": "file-1", "detail": "auto"}, ""),
        ({"type": "input_file", "file_url": "https://example.org/a.pdf"}, ""),
        ({"type": "input_file", "file_id": "file-1"}, ""),
    ],
)
async def test_what_only_has_an_address_is_refused(part: dict[str, Any], where: str) -> None:
    async with open_place([HELLO]) as place:
        with pytest.raises(openai.BadRequestError) as refused:
            await talker(place).say([part])

    assert refused.value.param == f"input.0.content.0{where}"
    assert place.count("opened") == 0


@requirement("responses:tools")
async def test_tools_in_a_namespace_are_called_under_their_clients_names() -> None:
    long = "a_tool_whose_name_is_longer_than_any_agent_takes_it_" * 2
    tools: list[Any] = [
        {"type": "namespace", "name": "sky", "description": "", "tools": [WEATHER, CLOCK]},
        {"type": "namespace", "name": "sea", "description": "", "tools": [WEATHER]},
        {**CLOCK, "name": long},
        CLOCK,
    ]
    script: list[Any] = [{"calls": [{"name": "sea__weather", "id": "x"}, {"name": "clock", "id": "y"}]}, *HELLO]
    async with open_place([script, HELLO]) as place:
        talk = talker(place, tools=tools)
        asked = await talk.say("Go.", stream=True)
        await talk.answer({"x": "calm", "y": "noon"})
        await talk.say("And?")

    [opened] = place.connector.opened
    assert {"sky__weather", "sky__clock", "sea__weather", "clock"} < {tool.name for tool in opened.tools}
    assert [(one.namespace, one.name) for one in asked.output if one.type == "function_call"] == [
        ("sea", "weather"),
        (None, "clock"),
    ]
    assert place.count("opened") == 1


class Weather(BaseModel):
    city: str
    degrees: int


@requirement("responses:structured")
@pytest.mark.parametrize("capability", ["turn", "conversation"])
async def test_a_text_format_is_the_answer(capability: str) -> None:
    script = {
        "turns": [[{"text": "Let me see."}, {"end": "end_turn", "structured_output": {"city": "Oslo", "degrees": 3}}]],
        "repeat": True,
        "capabilities": {"structured_output": capability}
        | ({"turn_options": []} if capability == "conversation" else {}),
    }
    async with open_place(script) as place:
        client = place.client()
        parsed = await client.responses.parse(**BODY, text_format=Weather)
        async with client.responses.stream(**BODY, text_format=Weather) as stream:
            streamed = await stream.get_final_response()
        [opened] = place.connector.opened

    assert parsed.output_parsed == streamed.output_parsed == Weather(city="Oslo", degrees=3)
    assert (opened.output_schema_json is not None) == (capability == "conversation")


@requirement("responses:tools")
async def test_calls_come_together_unless_the_client_wants_them_one_by_one() -> None:
    careful = {"turns": [HELLO], "repeat": True, "capabilities": {"parallel": "read_only"}}
    async with open_place(careful) as place:
        await talker(place).say("Go.")
        await talker(place, parallel_tool_calls=False).say("One by one.")

    assert [opened.tools[0].read_only for opened in place.connector.opened] == [True, None]
