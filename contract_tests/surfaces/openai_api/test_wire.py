"""OpenAI's wire itself: models, errors, ends, usage, options and content, as the `openai` package reads them."""

from __future__ import annotations

import json
from typing import Any

import anyio
import openai
import pytest
from pydantic import BaseModel

from contract_tests.requirements import requirement
from contract_tests.surfaces.openai_api.chat import CLOCK, WEATHER, open_place
from harness.contract import ImageBlock, ResourceBlock, TextBlock
from harness.surfaces.compatible.settings import CompatibleSettings

HELLO: list[Any] = [{"text": "Hello."}]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
BODY: Any = {"model": "fake", "messages": [{"role": "user", "content": "Go."}]}


@requirement("openai:models")
async def test_the_connectors_are_the_models() -> None:
    async with open_place([HELLO]) as place:
        client = place.client()
        listed = [model.id async for model in client.models.list()]
        one = await client.models.retrieve("fake/some-model")
        for name in ("gpt-4o", "other/model"):
            with pytest.raises(openai.NotFoundError) as unknown:
                await client.models.retrieve(name)
        answers = [
            await client.chat.completions.create(**{**BODY, "model": name})
            for name in ("fake", "fake:ask", "fake/some-model", "fake:ask/a/b")
        ]

    assert listed == ["fake"]
    assert (one.id, one.object) == ("fake/some-model", "model")
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    assert [one.model for one in answers] == ["fake", "fake:ask", "fake/some-model", "fake:ask/a/b"]
    assert [one.model for one in place.connector.opened] == [None, None, "some-model", "a/b"]


@requirement("openai:models")
@pytest.mark.parametrize("model", ["gpt-4o", "fake:none", "", "/fake"])
async def test_an_unknown_model_is_a_404(model: str) -> None:
    async with open_place([HELLO]) as place:
        with pytest.raises(openai.NotFoundError) as unknown:
            await place.client().chat.completions.create(**{**BODY, "model": model})

    assert (unknown.value.code, unknown.value.type) == ("model_not_found", "invalid_request_error")


@requirement("openai:ends")
@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("max_turns", "length"),
        ("budget", "length"),
        ("refusal", "content_filter"),
    ],
)
async def test_ends_have_openais_reasons(end: str, reason: str) -> None:
    async with open_place([[{"text": "So far."}, {"end": end}]]) as place:
        chat = place.chat()
        whole = await chat.say("Go.")
        streamed = await place.chat(stream=True).say("Go!")

    assert [one.finish_reason for one in (whole, streamed)] == [reason, reason]


@requirement("openai:ends")
async def test_usage_is_that_of_the_one_reply() -> None:
    script: list[Any] = [
        {"usage": {"input_tokens": 10, "output_tokens": 2, "cached_input_tokens": 4}},
        {"calls": [{"name": "weather", "id": "oslo"}]},
        {"usage": {"input_tokens": 25, "output_tokens": 7, "cached_input_tokens": 9, "reasoning_tokens": 3}},
    ]
    async with open_place([script]) as place:
        client = place.client()
        first = await client.chat.completions.create(**BODY, tools=[WEATHER])
        call = first.choices[0].message.model_dump(exclude_none=True)
        messages = [*BODY["messages"], call, {"role": "tool", "tool_call_id": "oslo", "content": "rain"}]
        stream = await client.chat.completions.create(
            model="fake", messages=messages, tools=[WEATHER], stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        bare = await client.chat.completions.create(model="fake", messages=messages, tools=[WEATHER], stream=True)
        without = [chunk async for chunk in bare]

    assert first.usage is not None
    assert (first.usage.prompt_tokens, first.usage.completion_tokens, first.usage.total_tokens) == (10, 2, 12)
    last: Any = chunks[-1]
    assert last.choices == []
    assert last.usage.model_dump(exclude_none=True) == {
        "prompt_tokens": 15,
        "completion_tokens": 5,
        "total_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    assert all(chunk.usage is None for chunk in (*chunks[:-1], *without))


@requirement("openai:ends")
async def test_what_the_peer_thought_and_took_back_is_apart_from_what_it_said() -> None:
    script: list[Any] = [
        {"thinking": ["Well. ", "Yes."]},
        {"text": "Wrong", "item_id": "m1"},
        {"discard": "m1"},
        {"text": "Right.", "item_id": "m2"},
        {"message": "And a word.", "item_id": "m3"},
        {"message": "Right.", "item_id": "m2"},
    ]
    async with open_place([script, HELLO]) as place:
        chat = place.chat()
        whole = await chat.say("Go.")
        await chat.say("And now?")

    assert whole.message.content == "Right.\n\nAnd a word."
    assert whole.message.reasoning_content == "Well. Yes."
    assert place.count("opened") == 1


@requirement("openai:ends")
@pytest.mark.parametrize(
    ("error", "kind", "code", "repeats"),
    [
        (
            {"code": "provider_error", "detail": {"reason": "rate_limit"}},
            openai.RateLimitError,
            "rate_limit_exceeded",
            0,
        ),
        ({"code": "context_overflow"}, openai.BadRequestError, "context_length_exceeded", 0),
        ({"code": "peer_lost"}, openai.InternalServerError, "peer_lost", 1),
        ({"code": "connector_unavailable"}, openai.InternalServerError, "connector_unavailable", 0),
    ],
)
async def test_a_turn_that_fails_is_an_error_of_the_sdk(
    error: dict[str, Any], kind: type[openai.APIStatusError], code: str, repeats: int
) -> None:
    async with open_place([[{"error": {**error, "message": "It rains."}}]]) as place:
        client = place.client(max_retries=1)
        for stream in (False, True):
            with pytest.raises(kind, match="It rains") as failed:
                await client.chat.completions.create(**BODY, stream=stream)

    assert failed.value.code == code
    assert place.count("message") == 2 * (1 + repeats)
    assert failed.value.response.headers["x-harness-conversation"]


@requirement("openai:ends")
async def test_an_error_in_the_middle_of_a_stream_is_raised_by_the_sdk() -> None:
    go_on = anyio.Event()
    async with open_place([[{"text": "one"}, {"until": go_on}, {"error": {"code": "peer_lost"}}]]) as place:
        stream = await place.client().chat.completions.create(**BODY, stream=True)
        await anext(stream)
        go_on.set()
        with pytest.raises(openai.APIError) as failed:
            async for _ in stream:
                pass

    assert failed.value.code == "peer_lost"


@requirement("openai:ends")
async def test_refusals_of_the_server_itself_have_openais_shape() -> None:
    async with open_place([HELLO]) as place:
        with pytest.raises(openai.AuthenticationError) as stranger:
            await place.client(api_key="wrong").models.list()
        with pytest.raises(openai.NotFoundError) as nowhere:
            await place.client().embeddings.create(model="fake", input="x")

    assert stranger.value.code == "invalid_api_key"
    assert "embeddings" in nowhere.value.message


@requirement("openai:meaning")
@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"stop": ["END"]}, "stop"),
        ({"modalities": ["audio"], "audio": {"voice": "alloy", "format": "wav"}}, "audio"),
        ({"tool_choice": "required", "tools": [WEATHER]}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "weather"}}, "tools": [WEATHER]}, "tool_choice"),
        ({"tool_choice": "none", "tools": [WEATHER]}, "tool_choice"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"reasoning_effort": "enormous"}, "reasoning_effort"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "narrator", "content": "x"}]}, "messages.0"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages.0.content.0.text"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0.tool_call_id"),
        ({"temperature": "hot"}, "temperature"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages"),
        ({"tools": [{"type": "function", "function": {"name": "no spaces please"}}]}, "tools.0.function.name"),
    ],
)
async def test_what_would_change_the_answer_and_reaches_nobody_is_a_400(options: dict[str, Any], param: str) -> None:
    plain = {"turns": [HELLO], "capabilities": {"turn_options": [], "structured_output": "none"}}
    async with open_place(plain) as place:
        with pytest.raises(openai.BadRequestError) as refused:
            await place.client().chat.completions.create(**{**BODY, **options})

    assert refused.value.param == param
    assert place.count("opened") == 0


@requirement("openai:meaning")
async def test_hints_that_reach_nobody_are_named() -> None:
    hints: dict[str, Any] = {
        "temperature": 0.1,
        "seed": 1,
        "user": "u",
        "top_p": 1,
        "max_completion_tokens": 5,
        "reasoning_effort": "low",
        "extra_body": {"top_k": 3},
    }
    plain = {"turns": [HELLO, HELLO], "capabilities": {"turn_options": []}}
    async with open_place(plain) as place:
        chat = place.chat(**hints)
        await chat.say("Go.")
        ignored = chat.ignored
    async with open_place([HELLO]) as able:
        other = able.chat(temperature=0.1, max_tokens=5, tool_choice="required", store=False)
        await other.say("Go.")

    assert ignored is not None
    assert set(ignored.split(", ")) == {
        "temperature",
        "seed",
        "user",
        "max_completion_tokens",
        "reasoning_effort",
        "top_k",
    }
    assert other.ignored is None


@requirement("openai:meaning")
async def test_names_of_hints_cannot_break_the_header() -> None:
    async with open_place([HELLO]) as place:
        chat = place.chat(extra_body={"a\r\nSet-Cookie: x": 1, "wärme": 2, "x" * 5000: 3})
        await chat.say("Go.")

    assert chat.ignored is not None
    assert chat.ignored.startswith("a??Set-Cookie??x, w?rme, xxx")
    assert len(chat.ignored) == 2000


@requirement("openai:content", "R-B2")
async def test_ten_megabytes_pass_both_ways() -> None:
    image, text = "A" * 10_000_000, "x" * 5_000_000
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}
    async with open_place([[{"text": text}], HELLO]) as place:
        chat = place.chat()
        heard = await chat.say([part])
        await chat.say("And now?", stream=True)

    [seen] = [one.value for one in place.peer.seen if one.what == "message"][:1]
    assert seen == (ImageBlock(data=image, media_type="image/png"),)
    assert heard.message.content == text
    assert place.count("opened") == 1


@requirement("openai:content")
async def test_content_arrives_as_it_is() -> None:
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
    ]
    script: list[Any] = [{"calls": [{"name": "weather", "id": "a"}, {"name": "clock", "id": "b"}]}, *HELLO]
    async with open_place([script]) as place:
        chat = place.chat(tools=[WEATHER, CLOCK])
        chat.messages = [
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
        ]
        await chat.say(parts)
        chat.messages += [
            {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": x} for x in ("one", "two")]},
            {"role": "tool", "tool_call_id": "a", "content": "rain\u2028"},
            {"role": "user", "content": "Hurry."},
        ]
        await chat.send()

    [opened] = place.connector.opened
    assert opened.system_prompt == "Be brief.\n\nBe kind."
    assert [tool.name for tool in opened.tools] == ["clock", "weather"]
    [schema] = [tool.input_schema_json for tool in opened.tools if tool.name == "weather"]
    assert json.loads(schema) == WEATHER["function"]["parameters"]
    [message] = [one.value for one in place.peer.seen if one.what == "message"]
    assert message == (TextBlock(text="What is this?"), ImageBlock(data=PIXEL, media_type="image/png"))
    answers = {one.request_id: one.content for one in place.peer.answers}
    assert answers == {
        "b": [TextBlock(text="one"), TextBlock(text="two")],
        "a": [TextBlock(text="rain\u2028"), TextBlock(text="Hurry.")],
    }


@requirement("openai:content")
@pytest.mark.parametrize(
    ("part", "where"),
    [
        ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, "image_url.url"),
        ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, "image_url.url"),
        ({"type": "image_url", "image_url": {"url": "data:image/png,abc"}}, "image_url.url"),
        ({"type": "file", "file": {"file_id": "file-1"}}, "file"),
    ],
)
async def test_what_only_has_an_address_is_refused(part: dict[str, Any], where: str) -> None:
    async with open_place([HELLO]) as place:
        with pytest.raises(openai.BadRequestError) as refused:
            await place.chat().say([part])

    assert refused.value.param == f"messages.0.content.0.{where}"
    assert place.count("opened") == 0


@requirement("openai:content")
async def test_a_document_reaches_a_connector_that_takes_it_and_no_other() -> None:
    part = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}}
    able = {"turns": [HELLO], "capabilities": {"documents_in_prompt": ["application/pdf"]}}
    async with open_place(able) as place:
        await place.chat().say([part])
    async with open_place([HELLO]) as other:
        with pytest.raises(openai.BadRequestError) as refused:
            await other.chat().say([part])

    [message] = [one.value for one in place.peer.seen if one.what == "message"]
    assert message == (ResourceBlock(uri="file:a.pdf", media_type="application/pdf", data="AAAA"),)
    assert refused.value.code == "content_not_supported"


class Weather(BaseModel):
    city: str
    degrees: int


@requirement("openai:structured")
@pytest.mark.parametrize("capability", ["turn", "conversation"])
async def test_a_response_format_is_the_answer(capability: str) -> None:
    script = {
        "turns": [[{"text": "Let me see."}, {"end": "end_turn", "structured_output": {"city": "Oslo", "degrees": 3}}]],
        "repeat": True,
        "capabilities": {"structured_output": capability}
        | ({"turn_options": []} if capability == "conversation" else {}),
    }
    async with open_place(script) as place:
        parsed = await place.client().chat.completions.parse(**BODY, response_format=Weather)
        [opened] = place.connector.opened

    assert parsed.choices[0].message.parsed == Weather(city="Oslo", degrees=3)
    assert (opened.output_schema_json is not None) == (capability == "conversation")


@requirement("openai:parallel")
async def test_a_careful_peer_is_told_that_it_may_call_the_clients_tools_side_by_side() -> None:
    careful = {"turns": [HELLO], "repeat": True, "capabilities": {"parallel": "read_only"}}
    hinted: list[bool | None] = []
    for allowed in (True, False):
        async with open_place(careful, compatible=CompatibleSettings(parallel_calls=allowed)) as place:
            await place.chat().say("Go.")
            await place.chat(parallel_tool_calls=False).say("One by one.")
            hinted += [opened.tools[0].read_only for opened in place.connector.opened]
    async with open_place([HELLO]) as free:
        chat = free.chat(parallel_tool_calls=False)
        await chat.say("One by one.")

    assert hinted == [True, None, None, None]
    assert chat.ignored == "parallel_tool_calls"
    assert [opened.tools[0].read_only for opened in free.connector.opened] == [None]
