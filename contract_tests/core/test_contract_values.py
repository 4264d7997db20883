"""Values are frozen, read generously and written strictly."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from contract_tests.core.contract_samples import ITEMS, SAMPLES
from contract_tests.requirements import requirement
from harness import contract, errors
from harness.contract import (
    ConversationOptions,
    HostRequest,
    HostResponse,
    Limits,
    LlmCapabilities,
    Notice,
    OptionKind,
    OutputItem,
    RequestOption,
    TextBlock,
    Timeouts,
    ToolDescriptor,
    TurnEnded,
    TurnOptions,
    TurnState,
    UnknownBlock,
    UnknownItem,
    UsageInfo,
    Value,
    add_usage,
    as_content,
    text_of,
)

ITEM: TypeAdapter[Any] = TypeAdapter(OutputItem)


@requirement("contract:values:round-trip")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_a_value_reads_back_what_it_wrote(sample: Value) -> None:
    text = sample.to_json()
    again = type(sample).model_validate_json(text)
    assert again == sample
    assert again.to_json() == text
    assert type(sample).model_validate(sample.to_dict()) == sample


@requirement("contract:writing:strict")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_nulls_are_omitted_and_discriminators_always_written(sample: Value) -> None:
    written = json.loads(sample.to_json())
    assert nulls(written) == []
    for name in ("kind", "type"):
        if name in type(sample).model_fields:
            assert written[name] == getattr(sample, name)


def nulls(value: Any, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [found for key, member in value.items() for found in nulls(member, f"{path}.{key}")]
    if isinstance(value, list):
        return [found for number, member in enumerate(value) for found in nulls(member, f"{path}[{number}]")]
    return [path] if value is None else []


@requirement("contract:writing:strict")
def test_what_is_false_empty_or_zero_is_written() -> None:
    written = Notice(sequence_no=0, at=0, code="", text="").to_dict()
    assert written == {"sequence_no": 0, "at": 0, "kind": "notice", "code": "", "text": ""}
    assert HostResponse(request_id="r").to_dict() == {
        "request_id": "r",
        "content": [],
        "is_error": False,
        "answers": [],
    }


def test_values_are_frozen() -> None:
    with pytest.raises(ValidationError):
        TextBlock(text="a").text = "b"  # pyright: ignore[reportAttributeAccessIssue]


@requirement("contract:reading:generous")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_unknown_fields_are_ignored(sample: Value) -> None:
    newer = {**sample.to_dict(), "from_the_future": {"a": [1]}}
    read = type(sample).model_validate(newer)
    if isinstance(sample, UnknownItem | UnknownBlock):
        assert read.to_dict() == newer
    else:
        assert read == sample


@requirement("contract:reading:generous")
def test_an_unknown_item_keeps_its_raw_fields_and_writes_them_back() -> None:
    newer = {"kind": "hologram", "sequence_no": 3, "at": 5, "beams": [{"angle": 1.5}], "item_id": "m"}
    item = ITEM.validate_python(newer)
    assert isinstance(item, UnknownItem)
    assert (item.kind, item.sequence_no) == ("hologram", 3)
    assert item.to_dict() == newer


@requirement("contract:reading:generous")
def test_an_unknown_block_inside_a_turn_keeps_its_raw_fields_and_writes_them_back() -> None:
    block = {"type": "smell", "notes": {"top": ["lemon"], "strength": 3}}
    state: dict[str, Any] = {
        "status": "running",
        "sequence_no": 1,
        "last_activity_at": 0,
        "started_at": 0,
        "new_output_items": [{"kind": "message", "sequence_no": 1, "at": 0, "content": [block]}],
    }
    read = TurnState.model_validate_json(json.dumps(state))
    assert read.to_dict()["new_output_items"][0]["content"] == [block]


@requirement("contract:reading:generous")
def test_an_unknown_enum_member_stays_the_string_it_is() -> None:
    option = RequestOption.model_validate({"id": "x", "kind": "allow_today"})
    assert option.kind == "allow_today"
    assert option.to_dict() == {"id": "x", "kind": "allow_today"}
    state = TurnState.model_validate({"status": "pondering", "sequence_no": 0, "last_activity_at": 0, "started_at": 0})
    assert state.status == "pondering"
    assert LlmCapabilities.model_validate({"routable_request_kinds": ["dream"]}).routable_request_kinds == ["dream"]


def test_a_known_enum_member_becomes_the_enum() -> None:
    assert RequestOption.model_validate({"id": "x", "kind": "deny"}).kind is OptionKind.DENY


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.kind)
def test_an_item_of_the_union_is_read_as_its_own_class(item: Any) -> None:
    assert ITEM.validate_json(item.to_json()) == item
    assert type(ITEM.validate_python(item)) is type(item)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "text_delta", "sequence_no": 1, "at": 0},
        {"sequence_no": 1, "at": 0},
        {"kind": 3, "sequence_no": 1, "at": 0},
        {"kind": "hologram"},
    ],
)
def test_an_item_without_what_it_needs_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ITEM.validate_python(wrong)


@pytest.mark.parametrize("name", ["", "a b", "ü", "x" * 65, "a.b"])
def test_a_tool_name_that_no_provider_takes_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        ToolDescriptor(name=name)


@pytest.mark.parametrize(
    "wrong", [{"limits": {"max_turns": 0}}, {"timeouts": {"tool_ms": -1}}, {"effort": "much"}, {"tools": [{}]}]
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ConversationOptions.model_validate(wrong)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_temperature_is_a_number(number: str) -> None:
    with pytest.raises(ValidationError):
        TurnOptions.model_validate_json(f'{{"temperature": {number}}}')


def test_the_defaults_are_those_of_the_contract() -> None:
    assert Timeouts() == Timeouts(tool_ms=None, approval_ms=300_000, turn_ms=None, idle_ms=600_000)
    assert Limits().to_dict() == {}
    assert ConversationOptions().internal_tools == []


@requirement("contract:values:round-trip")
def test_a_timeout_of_none_travels_as_zero_because_nulls_are_omitted() -> None:
    unlimited = Timeouts(tool_ms=None, approval_ms=None, turn_ms=None, idle_ms=None)
    assert unlimited.to_dict() == {"approval_ms": 0, "idle_ms": 0}
    assert Timeouts.model_validate_json(unlimited.to_json()) == unlimited
    assert Timeouts.model_validate({"approval_ms": None, "tool_ms": 0}) == Timeouts(approval_ms=None, tool_ms=None)


@requirement("contract:values:round-trip")
def test_what_may_be_null_is_null_by_default_or_it_could_not_be_omitted() -> None:
    lossy = [
        f"{model.__name__}.{name}"
        for model in public_values()
        for name, field in model.model_fields.items()
        if type(None) in get_args(field.annotation) and field.default is not None and model is not Timeouts
    ]
    assert lossy == []


def public_values() -> list[type[Value]]:
    found = [getattr(contract, name) for name in contract.__all__]
    return [value for value in found if isinstance(value, type) and issubclass(value, Value)]


# value-exact pass-through


@requirement("contract:json:passes-through")
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_texts_pass_through_letter_by_letter(text: str) -> None:
    request = HostRequest(kind="tool_call", arguments_json=json.dumps({"a": text}), title=text)
    assert HostRequest.model_validate_json(request.to_json()) == request


@requirement("contract:json:passes-through")
@pytest.mark.parametrize(
    "text",
    ['{"price": 1.10}', '{"n":123456789012345678901234567890}', '{"b":1,"a":2,"b":3}', '{"half":"\\ud83d"}', "{oops"],
)
def test_json_text_is_never_parsed_on_its_way(text: str) -> None:
    request = HostRequest(kind="tool_call", arguments_json=text)
    assert HostRequest.model_validate_json(request.to_json()).arguments_json == text


# small helpers of the contract


def test_usage_adds_up_and_what_nobody_knows_stays_unknown() -> None:
    first = UsageInfo.model_validate({"input_tokens": 1, "by_model": [{"model": "a", "input_tokens": 1}]})
    second = UsageInfo.model_validate(
        {"input_tokens": 2, "cost_usd": 0.5, "by_model": [{"model": "a", "input_tokens": 2}, {"model": "b"}]}
    )
    both = add_usage(first, second)
    assert both is not None
    assert (both.input_tokens, both.cost_usd, both.output_tokens) == (3, 0.5, None)
    assert [(one.model, one.input_tokens) for one in both.by_model] == [("a", 3), ("b", None)]
    assert add_usage(None, second) is second
    assert add_usage(None, None) is None


def test_texts_of_blocks() -> None:
    assert as_content("a") == [TextBlock(text="a")]
    assert text_of([TextBlock(text="a"), UnknownBlock(type="x"), TextBlock(text="b")]) == "a\nb"


def test_an_option_named_by_kind_is_found_where_only_one_has_it() -> None:
    request = HostRequest(
        kind="approval",
        options=[RequestOption(id=i, kind=k) for i, k in (("1", "allow_once"), ("2", "deny"), ("3", "deny"))],
    )
    assert request.option("allow_once") == request.options[0]
    assert request.option("2") == request.options[1]
    assert request.option("deny") is None
    assert request.option(None) is None


# the exception tree


def classes(root: type[errors.HarnessError]) -> list[type[errors.HarnessError]]:
    return [root, *(found for child in root.__subclasses__() for found in classes(child))]


@requirement("contract:errors:one-code")
def test_every_code_names_one_class_and_the_tree_draws_it() -> None:
    own = [cls for cls in classes(errors.HarnessError)[1:] if "code" in vars(cls)]
    codes = [cls.code for cls in own]
    assert len(set(codes)) == len(codes)
    for cls in own:
        assert f" {cls.code}" in (errors.__doc__ or ""), cls
        assert cls.__name__ in (errors.__doc__ or "")


@requirement("contract:errors:one-code")
@pytest.mark.parametrize("code", sorted({c.code for c in classes(errors.HarnessError)}))
def test_an_error_survives_the_wire(code: str) -> None:
    error = errors.from_code(code, "m", {"a": 1})
    assert (error.code, error.message, error.detail["a"]) == (code, "m", 1)
    ended = TurnEnded.model_validate(
        {"sequence_no": 1, "at": 0, "status": "failed", "stop_reason": "error", "error": {"code": code, "message": "m"}}
    )
    assert ended.error is not None
    assert ended.error.code == code


def test_a_code_of_a_newer_side_is_an_internal_error_that_keeps_it() -> None:
    error = errors.from_code("too_purple", "m")
    assert isinstance(error, errors.Internal)
    assert error.detail == {"code": "too_purple"}


def test_our_own_error_comes_out_of_a_group_and_anything_else_as_it_is() -> None:
    ours = errors.PeerLost("gone")
    with pytest.raises(errors.PeerLost), errors.unwrapped():
        raise ExceptionGroup("both", [ExceptionGroup("inner", [ValueError("pipe")]), ours])
    with pytest.raises(ValueError, match="alone"), errors.unwrapped():
        raise ExceptionGroup("one", [ValueError("alone")])
    with pytest.raises(ExceptionGroup), errors.unwrapped():
        raise ExceptionGroup("two", [ValueError("a"), KeyError("b")])
