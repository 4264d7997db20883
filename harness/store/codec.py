"""Entries <-> rows of text. Long strings are taken out, so that a blob that comes twice is stored once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

from pydantic import TypeAdapter

from harness.contract.content import ContentBlock
from harness.contract.options import TurnOptions
from harness.contract.output import Item, OutputItem
from harness.contract.requests import HostResponse
from harness.contract.value import JsonValue
from harness.store.port import (
    AnswerDelivered,
    AnswerRecorded,
    AnswerState,
    DelegationChanged,
    Entry,
    ItemsProduced,
    OutputStructured,
    Remembered,
    TurnBegun,
)

BLOB_CHARS = 16 * 1024
"""Strings from this length on live in a table of their own."""
_BLOB_KEY = "$harness:blob"
_item = TypeAdapter[Item](OutputItem)
_content = TypeAdapter[list[ContentBlock]](list[ContentBlock])


@dataclass(frozen=True, slots=True)
class Row:
    kind: str
    turn_id: str | None
    sequence_no: int | None
    body: str


def rows_of(entry: Entry) -> Iterator[Row]:
    match entry:
        case ItemsProduced(turn_id, items):
            for item in items:
                yield Row("item", turn_id, item.sequence_no, item.to_json())
        case TurnBegun(turn_id, content, options, at):
            body = f'{{"content":{_dump_content(content)},"options":{options.to_json()},"at":{at}}}'
            yield Row("turn", turn_id, None, body)
        case AnswerRecorded(turn_id, response, state):
            yield Row("answer", turn_id, None, f'{{"state":"{state}","response":{response.to_json()}}}')
        case AnswerDelivered(turn_id, request_id):
            yield Row("delivered", turn_id, None, json.dumps(request_id))
        case OutputStructured(turn_id, text):
            yield Row("structured", turn_id, None, json.dumps(text))
        case Remembered(record):
            yield Row("log", None, None, json.dumps(record, separators=(",", ":")))
        case DelegationChanged(text):
            yield Row("delegation", None, None, text)


def entry_of(row: Row) -> Entry:
    turn_id = row.turn_id or ""
    match row.kind:
        case "item":
            return ItemsProduced(turn_id, [item_of(row.body)])
        case "turn":
            value = json.loads(row.body)
            options = TurnOptions.model_validate(value["options"])
            return TurnBegun(turn_id, _content.validate_python(value["content"]), options, value["at"])
        case "answer":
            value = json.loads(row.body)
            response = HostResponse.model_validate(value["response"])
            return AnswerRecorded(turn_id, response, AnswerState(value["state"]))
        case "delivered":
            return AnswerDelivered(turn_id, json.loads(row.body))
        case "structured":
            return OutputStructured(turn_id, json.loads(row.body))
        case "log":
            return Remembered(json.loads(row.body))
        case "delegation":
            return DelegationChanged(row.body)
        case kind:
            raise ValueError(f"the journal has an entry of the unknown kind '{kind}'")


def item_of(body: str) -> Item:
    return _item.validate_json(body)


def without_blobs(body: str) -> tuple[str, dict[str, str]]:
    """The body with its long strings replaced by their digests, and those strings by digest."""
    blobs: dict[str, str] = {}

    def take_out(value: JsonValue) -> JsonValue:
        if isinstance(value, str) and len(value) >= BLOB_CHARS:
            digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
            blobs[digest] = value
            return {_BLOB_KEY: digest}
        if _is_place(value):  # a record of a connector that looks like one of ours
            return {_BLOB_KEY: [take_out(value[_BLOB_KEY])]}
        return _mapped(value, take_out)

    value = take_out(json.loads(body))
    return (json.dumps(value, separators=(",", ":")), blobs) if blobs else (body, blobs)


def with_blobs(body: str, read: Callable[[str], str]) -> str:
    """The body as it was."""
    if _BLOB_KEY not in body:
        return body

    def put_back(value: JsonValue) -> JsonValue:
        if not _is_place(value):
            return _mapped(value, put_back)
        named = value[_BLOB_KEY]
        return {_BLOB_KEY: put_back(named[0])} if isinstance(named, list) else read(named)

    return json.dumps(put_back(json.loads(body)), separators=(",", ":"))


def _is_place(value: JsonValue) -> TypeGuard[dict[str, JsonValue]]:
    """Whether this is where a string was taken out."""
    return isinstance(value, dict) and cast(dict[str, JsonValue], value).keys() == {_BLOB_KEY}


def _mapped(value: JsonValue, change: Callable[[JsonValue], JsonValue]) -> JsonValue:
    if isinstance(value, dict):
        return {name: change(member) for name, member in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [change(member) for member in cast(list[Any], value)]
    return value


def _dump_content(content: Iterable[ContentBlock]) -> str:
    return "[" + ",".join(block.to_json() for block in content) + "]"
