"""Our values as MCP values: exact where MCP can say it, named where it cannot."""

import json
from typing import Any

import pytest

from bridge_mcp.mapping import MAX_NAME_CHARS, Rewrite, map_tools, result_of, wire_names
from contract_tests.requirements import requirement
from harness.contract.content import (
    AudioBlock,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
    UnknownBlock,
)
from harness.contract.requests import HostResponse
from harness.contract.tools import ToolDescriptor
from harness.errors import InvalidArgument

PREFIX = "mcp__host__"


def mapped(tool: ToolDescriptor) -> dict[str, Any]:
    return map_tools([tool], prefix=PREFIX).tools[0]


@requirement("R-I4")
def test_a_schema_passes_with_its_keys_in_their_order() -> None:
    sent = (
        '{"$defs":{"city":{"enum":["Oslo",null]}},"type":"object","x-mine":{"b":1,"a":[]},'
        '"required":["to"],"properties":{"to":{"$ref":"#/$defs/city"},"n":{"const":9007199254740993}},'
        '"additionalProperties":false}'
    )
    tool = mapped(ToolDescriptor(name="go", description="Goes.", input_schema_json=sent))
    assert json.dumps(tool["inputSchema"], separators=(",", ":")) == sent


@requirement("R-I5")
def test_a_tool_without_arguments_has_an_empty_object_schema() -> None:
    assert mapped(ToolDescriptor(name="now"))["inputSchema"] == {"type": "object", "properties": {}}


@requirement("R-M7")
def test_hints_are_given_where_they_are_set_and_only_there() -> None:
    assert "annotations" not in mapped(ToolDescriptor(name="a"))
    tool = ToolDescriptor(name="a", read_only=True, destructive=False, idempotent=True, open_world=False)
    assert mapped(tool)["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }


@requirement("bridge:mapping:large-results")
def test_every_tool_asks_for_results_to_pass_uncut() -> None:
    assert mapped(ToolDescriptor(name="a"))["_meta"] == {"anthropic/maxResultSizeChars": 500_000}


@requirement("R-I3")
def test_an_output_schema_never_reaches_the_peer() -> None:
    assert set(mapped(ToolDescriptor(name="a", output_schema_json='{"bad":'))) == {
        "name",
        "description",
        "inputSchema",
        "_meta",
    }


@requirement("R-I1")
def test_names_fit_with_the_prefix_and_lead_back_to_the_tool() -> None:
    long = [ToolDescriptor(name="x" * 63 + end) for end in "abc"]
    short = ToolDescriptor(name="short")
    tools = map_tools([*long, short], prefix=PREFIX)

    names = [tool["name"] for tool in tools.tools]
    assert all(len(PREFIX + name) <= MAX_NAME_CHARS for name in names)
    assert [tools.ours[name] for name in names] == [*long, short]
    assert names[-1] == "short"
    assert tools.rewrites == [Rewrite(tool.name, "name_shortened") for tool in long]
    assert names == [tool["name"] for tool in map_tools([*long, short], prefix=PREFIX).tools]


@requirement("R-I1")
def test_a_shortened_name_never_takes_that_of_another_tool() -> None:
    long = "y" * 40
    collides = wire_names([long], 20)[long]
    names = wire_names([long, collides], 20)
    assert names[collides] == collides
    assert names[long] != collides
    assert len(names[long]) <= 20


@requirement("R-I2")
def test_a_root_without_a_type_gets_one_by_a_named_rewrite() -> None:
    tool = ToolDescriptor(name="a", input_schema_json='{"properties":{"q":{}},"anyOf":[{"required":["q"]}]}')
    tools = map_tools([tool])
    assert tools.tools[0]["inputSchema"] == {
        "type": "object",
        "properties": {"q": {}},
        "anyOf": [{"required": ["q"]}],
    }
    assert tools.rewrites == [Rewrite("a", "root_type_added")]


@requirement("R-I2")
@pytest.mark.parametrize("schema", ['{"type":"string"}', '{"type":["object","null"]}', "[]", "true", "{"])
def test_a_root_that_is_no_object_is_refused_with_the_name_of_the_tool(schema: str) -> None:
    with pytest.raises(InvalidArgument, match="'bad_one'"):
        map_tools([ToolDescriptor(name="bad_one", input_schema_json=schema)])


@requirement("R-G3")
def test_an_answer_becomes_blocks_in_their_order_and_keeps_its_error_flag() -> None:
    content = [
        TextBlock(text="a\u2028b"),
        ImageBlock(data="aGk=", media_type="image/png"),
        AudioBlock(data="aGk=", media_type="audio/wav"),
        ResourceBlock(uri="file:///x", text="inner"),
        ResourceLinkBlock(uri="https://example.org/y"),
        UnknownBlock.model_validate({"type": "video", "frames": 2}),
    ]
    assert result_of(HostResponse(request_id="r", content=content)) == {
        "content": [
            {"type": "text", "text": "a\u2028b"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///x", "text": "inner"}},
            {"type": "resource_link", "uri": "https://example.org/y", "name": "https://example.org/y"},
            {"type": "text", "text": '{"type":"video","frames":2}'},
        ]
    }
    failed = HostResponse(request_id="r", content=[TextBlock(text="no")], is_error=True)
    assert result_of(failed) == {"content": [{"type": "text", "text": "no"}], "isError": True}


@requirement("R-L6")
def test_structured_content_becomes_a_text_block_once_and_never_a_field_of_its_own() -> None:
    both = HostResponse(request_id="r", content=[TextBlock(text="12 C")], structured_content_json='{"t":12}')
    assert result_of(both) == {
        "content": [{"type": "text", "text": "12 C"}, {"type": "text", "text": '{"t":12}'}],
    }
    same = HostResponse(request_id="r", content=[TextBlock(text='{"t":12}')], structured_content_json='{"t":12}')
    assert result_of(same) == {"content": [{"type": "text", "text": '{"t":12}'}]}
