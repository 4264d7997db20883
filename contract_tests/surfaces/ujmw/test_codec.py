"""The codec: what it writes it reads back, in any spelling a client may use; and the few places with another shape."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract_tests.core.contract_samples import OPTIONS, POLICY, REQUEST, SAMPLES
from contract_tests.requirements import requirement
from contract_tests.surfaces.ujmw.values import KINDS, RAW_PREFIX, values_of
from harness import contract
from harness.contract import (
    ConversationOptions,
    Effort,
    HostRequest,
    LlmCapabilities,
    PolicyRule,
    RequestKind,
    TextBlock,
    Timeouts,
    ToolDescriptor,
    TurnState,
    TurnStatus,
    UnknownBlock,
    Value,
)
from harness.errors import InvalidArgument
from harness.surfaces.operations import CONTRACT_OPERATIONS
from harness.surfaces.ujmw.codec import decode, encode
from harness.surfaces.ujmw.names import pascal

GENEROUS = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@GENEROUS
@given(st.sampled_from(KINDS).flatmap(values_of), st.booleans(), st.randoms(use_true_random=False))
@requirement("ujmw:codec")
def test_any_value_reads_back_in_any_case_and_any_form_of_its_enums(
    value: Value, as_integers: bool, chance: Any
) -> None:
    plain = encode(value, enums_as_integers=as_integers)
    assert decode(type(value), json.loads(json.dumps(plain))) == value

    respelled = _respelled(encode(value), encode(value, enums_as_integers=True), chance)
    again = decode(type(value), respelled)
    assert again == value
    assert again.to_json() == value.to_json()


def _respelled(named: Any, numbered: Any, chance: Any) -> Any:
    """The same with other cases; where both forms differ there is an enum."""
    if isinstance(named, dict):
        return {
            key if key.startswith(RAW_PREFIX) else _in_other_case(key, chance): member
            if key.startswith(RAW_PREFIX)
            else _respelled(member, numbered[key], chance)
            for key, member in named.items()
        }
    if isinstance(named, list):
        return [_respelled(one, numbered[index], chance) for index, one in enumerate(named)]
    if named != numbered:
        return chance.choice([named, numbered, named.lower(), named.upper(), _snake(named)])
    return named


def _in_other_case(name: str, chance: Any) -> str:
    return chance.choice([name, name[0].upper() + name[1:], name.lower(), name.upper(), _snake(name)])


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


@requirement("ujmw:codec")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_explicit_nulls_are_defaults(sample: Value) -> None:
    members = encode(sample)
    nulls = {name: None for name in type(sample).model_fields if name not in _names_written(sample)}
    assert decode(type(sample), {**nulls, **members}) == sample


def _names_written(sample: Value) -> set[str]:
    return set(sample.to_dict())


@requirement("ujmw:codec")
def test_names_are_camel_case_and_enums_pascal_case_or_numbers() -> None:
    state = TurnState(
        status="awaiting_host", sequence_no=2**53 + 1, pending_requests=[REQUEST], last_activity_at=1, started_at=1
    )

    assert encode(state) == {
        "status": "AwaitingHost",
        "sequenceNo": 9007199254740993,
        "firstSequenceNo": 1,
        "hasMore": False,
        "newOutputItems": [],
        "pendingRequests": [
            {
                "requestId": "a1",
                "kind": "Approval",
                "callId": "toolu_1",
                "callIdSource": "Exact",
                "peerRequestId": "7",
                "order": 0,
                "toolName": "Bash",
                "argumentsJson": '{"command":"ls"}',
                "options": ["yes"],
                "optionDetails": [{"id": "yes", "kind": "AllowOnce", "label": "Yes", "description": "this time"}],
                "questions": [
                    {
                        "id": "q",
                        "text": "Why?",
                        "options": [{"id": "o", "label": "O"}],
                        "multiSelect": True,
                        "allowFreeText": False,
                        "secret": False,
                    }
                ],
                "openedAt": 1,
                "expiresAt": 2,
            }
        ],
        "session": "Attached",
        "cancelRequested": False,
        "lastActivityAt": 1,
        "startedAt": 1,
    }
    numbered = encode(state, enums_as_integers=True)
    assert (numbered["status"], numbered["pendingRequests"][0]["kind"]) == (1, 1)


@requirement("ujmw:shapes")
def test_the_error_of_a_turn_has_a_flat_message_too() -> None:
    [failed] = [sample for sample in SAMPLES if isinstance(sample, TurnState)]
    plain = encode(failed)
    assert plain["errorMessage"] == plain["error"]["message"] == "gone"
    assert [item["kind"] for item in plain["newOutputItems"]][:3] == ["TextDelta", "ThinkingDelta", "Message"]
    assert "errorMessage" not in encode(failed.model_copy(update={"error": None}))


@requirement("ujmw:shapes")
def test_names_of_the_upstream_sketch_are_read() -> None:
    members = {"Name": "look", "InputJsonSchema": "{}", "OutputJsonSchema": "[]", "ReadOnlyHint": True}
    tool = decode(ToolDescriptor, members)
    state = {"Status": "AwaitingHost", "StopReason": "EndTurn", "SequenceNo": 1, "LastActivityAt": 0, "StartedAt": 0}

    assert tool == ToolDescriptor(name="look", input_schema_json="{}", output_schema_json="[]", read_only=True)
    assert (decode(TurnState, state).status, decode(TurnState, state).stop_reason) == ("awaiting_host", "end_turn")
    assert decode(PolicyRule, {"kind": "ToolCall"}).kind == decode(PolicyRule, {"Kind": 0}).kind == "tool_call"


@requirement("ujmw:codec")
def test_the_ordinals_of_the_sketch_are_ours() -> None:
    kinds = [decode(HostRequest, {"kind": number}).kind for number in range(3)]
    statuses = [
        decode(TurnState, {"status": number, "sequenceNo": 0, "lastActivityAt": 0, "startedAt": 0}).status
        for number in range(5)
    ]

    assert kinds == [RequestKind.TOOL_CALL, RequestKind.APPROVAL, RequestKind.USER_QUESTION]
    assert statuses == ["running", "awaiting_host", "completed", "failed", "cancelled"]
    assert all(isinstance(status, TurnStatus) for status in statuses)


@requirement("ujmw:codec")
def test_no_limit_and_no_time_out_are_told_apart_from_the_default() -> None:
    off = Timeouts(approval_ms=None, idle_ms=None)
    plain = encode(off)
    assert (plain["approvalMs"], plain["idleMs"]) == (0, 0)
    assert decode(Timeouts, plain) == off
    assert decode(Timeouts, {"approvalMs": None, "idleMs": None}) == Timeouts()


@requirement("ujmw:codec")
def test_what_a_newer_contract_has_keeps_its_names() -> None:
    block = {"type": "smell", "top_notes": {"Top": ["lemon"]}}
    [kept] = decode(contract.HostResponse, {"requestId": "r", "content": [block]}).content
    assert isinstance(kept, UnknownBlock)
    assert encode(kept) == block
    assert (
        decode(TurnState, {"status": "Paused", "sequenceNo": 0, "lastActivityAt": 0, "startedAt": 0}).status == "Paused"
    )


@requirement("ujmw:codec")
@pytest.mark.parametrize(
    ("kind", "members", "told"),
    [
        (HostRequest, {}, "'kind' of the body"),
        (contract.HostResponse, {"RequestID": 7}, "'requestId' of the body"),
        (contract.HostResponse, {"requestId": "r", "content": [{"type": "Text"}]}, "'content.0.text.text'"),
        (contract.HostResponse, {"requestId": "r", "content": "hello"}, "'content' of the body"),
        (ConversationOptions, {"effort": 9}, "'effort' of the body"),
        (ConversationOptions, {"effort": True}, "'effort' of the body"),
        (ConversationOptions, {"systemPromptMode": "prepend"}, "'systemPromptMode' of the body"),
        (ConversationOptions, {"tools": [7]}, "'tools.0' of the body"),
        (ConversationOptions, {"timeouts": []}, "'timeouts' of the body"),
        (TurnState, {"status": 9, "sequenceNo": 0, "lastActivityAt": 0, "startedAt": 0}, "'status"),
    ],
)
def test_what_stands_for_no_value_is_named_as_the_client_writes_it(
    kind: type[Value], members: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        decode(kind, members)
    assert told in caught.value.message


@requirement("ujmw:codec")
def test_no_two_members_or_words_are_one_to_a_reader_without_case() -> None:
    for kind in KINDS:
        folded = [name.replace("_", "") for name in kind.model_fields]
        assert len(set(folded)) == len(folded), kind
    enums = [
        one for name in contract.__all__ if isinstance(one := getattr(contract, name), type) and issubclass(one, Enum)
    ]
    for enum in enums:
        words = [str(member.value) for member in enum]
        assert len({pascal(word).lower() for word in words}) == len(words), enum


@requirement("ujmw:operations")
def test_every_operation_of_the_contract_is_there_under_its_name() -> None:
    assert [pascal(one.name) for one in CONTRACT_OPERATIONS] == [
        "GetCapabilities",
        "BeginConversation",
        "SubmitUserMessage",
        "PollTurn",
        "SubmitResponses",
        "CancelTurn",
        "EndConversation",
        "DelegateToolSources",
        "DelegateRequestPolicy",
        "ListConversations",
        "GetConversation",
        "ListRequests",
        "ForkConversation",
        "DeleteConversation",
        "ExportConversation",
    ]
    assert {one.name for one in CONTRACT_OPERATIONS if one.gives is None} == {
        "submit_responses",
        "cancel_turn",
        "end_conversation",
        "delegate_tool_sources",
        "delegate_request_policy",
        "delete_conversation",
    }


def test_lists_and_texts_are_results_too() -> None:
    assert encode("c_1") == "c_1"
    assert encode([TextBlock(text="a"), POLICY])[0] == {"type": "Text", "text": "a"}
    assert encode(LlmCapabilities(routable_request_kinds=["tool_call"]))["routableRequestKinds"] == ["ToolCall"]
    assert encode(OPTIONS, enums_as_integers=True)["effort"] == list(Effort).index(Effort.EXTRA_HIGH)
