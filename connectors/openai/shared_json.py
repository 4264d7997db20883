"""What both APIs have in common on the wire (pure)."""

from __future__ import annotations

import json

from connectors._json import JsonObject, number_in, object_in
from connectors._model_json import whole_number
from harness.contract.content import ImageBlock
from harness.contract.options import Effort
from harness.contract.usage import UsageInfo
from harness.contract.value import JsonValue

EFFORTS = {
    Effort.NONE: "none",
    Effort.LOW: "low",
    Effort.MEDIUM: "medium",
    Effort.HIGH: "high",
    Effort.EXTRA_HIGH: "xhigh",
}


def data_url(block: ImageBlock) -> str:
    return f"data:{block.media_type};base64,{block.data}"


def usage_of(usage: JsonValue, *, names: tuple[str, str, str, str]) -> UsageInfo | None:
    """`names`: input, its details, output, its details. What the server does not report stays null."""
    given = object_in(usage)
    if not given:
        return None
    input_name, input_details, output_name, output_details = names
    read, written = object_in(given.get(input_details)), object_in(given.get(output_details))
    return UsageInfo(
        input_tokens=whole_number(given.get(input_name)),
        cached_input_tokens=whole_number(read.get("cached_tokens")),
        cache_write_tokens=whole_number(read.get("cache_write_tokens")),
        output_tokens=whole_number(given.get(output_name)),
        reasoning_tokens=whole_number(written.get("reasoning_tokens")),
        cost_usd=number_in(given.get("cost")),
    )


def json_schema(schema_json: str) -> JsonObject:
    """A structured answer as both APIs name it; not strict, as strict schemas must require every property."""
    return {"name": "answer", "schema": json.loads(schema_json), "strict": False}
