"""Services on the network as tool sources: any with an OpenAPI document, and UJMW."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from contract_tests.orchestrator.http_peer import serving
from contract_tests.peers.shop import ITEM, OPENAPI, Shop
from contract_tests.requirements import requirement
from harness import ImageBlock, TextBlock, ToolDescriptor, ToolRegistry
from harness.contract import ToolCall
from harness.errors import ConfigError, ConnectorUnavailable, InvalidArgument
from harness.orchestrator.openapi_source import open_openapi_source
from harness.orchestrator.tool_provider import ToolOutcome, ToolProvider
from harness.orchestrator.ujmw_source import open_ujmw_source

OTHER = "http://127.0.0.1:9/swagger.json"
SECRET = {"Authorization": "Bearer s"}


async def call(source: ToolProvider, name: str, **arguments: Any) -> ToolOutcome:
    registry = await ToolRegistry.of([source])
    return await registry.run(ToolCall(call_id="1", tool_name=name, arguments_json=json.dumps(arguments)))


def said(outcome: ToolOutcome) -> str:
    return "".join(block.text for block in outcome.content if isinstance(block, TextBlock))


@requirement("orchestrator:openapi:operations")
async def test_operations_of_a_document_are_tools_with_schemas_that_stand_alone() -> None:
    shop = Shop()
    with anyio.fail_after(10):
        async with serving(shop.app) as port, open_openapi_source(f"http://127.0.0.1:{port}/openapi.json") as source:
            tools = {tool.name: tool for tool in await source.list_tools()}
    assert sorted(tools) == ["addItem", "broken", "get_picture", "list_items", "moved"]
    assert (tools["list_items"].read_only, tools["addItem"].read_only, tools["broken"].destructive) == (
        True,
        False,
        True,
    )
    assert tools["list_items"].description == "Lists items."
    listing = json.loads(tools["list_items"].input_schema_json)
    assert listing["required"] == ["shelf"]
    assert listing["properties"]["X-Trace"] == {"type": "string", "description": "For the log."}
    adding = json.loads(tools["addItem"].input_schema_json)
    assert adding["properties"]["body"] == {"$ref": "#/$defs/Item"}
    assert list(adding["$defs"]) == ["Item"]
    properties = adding["$defs"]["Item"]["properties"]
    assert properties["note"] == {"type": ["string", "null"]}
    assert properties["parts"]["items"] == {"$ref": "#/$defs/Item"}
    assert properties["price"] == {"type": "number", "exclusiveMinimum": 0}
    assert ITEM["properties"]["note"]["nullable"] is True  # the document itself is left alone


@requirement("orchestrator:openapi:calls")
async def test_arguments_go_where_the_document_says() -> None:
    shop = Shop()
    with anyio.fail_after(10):
        async with serving(shop.app) as port:
            async with open_openapi_source(f"http://127.0.0.1:{port}/openapi.json", headers=SECRET) as source:
                listed = await call(source, "list_items", shelf="a/b ?", tag=["x&y", "z"])
                added = await call(source, "addItem", shelf="s", body={"name": "é", "parts": [{"name": "p"}]})
                refused = await call(source, "addItem", shelf="s", body={"name": "n", "parts": [{}]})
                picture = await call(source, "get_picture")
                moved = await call(source, "moved")
                broken = await call(source, "broken")
            async with open_openapi_source(
                f"http://127.0.0.1:{port}/openapi.json", base_url=f"http://127.0.0.1:{port}/api", select=["read"]
            ) as source:
                assert [tool.name for tool in await source.list_tools()] == ["list_items", "get_picture"]
    assert (said(listed), listed.structured_content_json) == ('{"items":["ø"]}', '{"items":["ø"]}')
    assert said(added) == '{"items":["ø"]}'
    assert refused.is_error and "'body.parts[0]'" in said(refused)
    assert list(picture.content) == [ImageBlock(data="iVBORw==", media_type="image/png")]
    assert moved.is_error and "redirects to 'http://127.0.0.1:9/elsewhere'" in said(moved)
    assert broken.is_error and "status 503: out of order" in said(broken)
    methods_and_paths = [seen[:3] for seen in shop.seen[:2]]
    assert methods_and_paths == [
        ("GET", "/api/shelves/a%2Fb%20%3F/items", "tag=x%26y&tag=z"),
        ("POST", "/api/shelves/s/items", ""),
    ]
    assert shop.seen[1][3] == "application/json"
    assert json.loads(shop.seen[1][4]) == {"name": "é", "parts": [{"name": "p"}]}
    assert {seen[5] for seen in shop.seen} == {"Bearer s"}


@requirement("orchestrator:openapi:mistakes")
async def test_what_cannot_be_used_is_named(tmp_path: Path) -> None:
    document = tmp_path / "shop.yaml"
    document.write_text(json.dumps(OPENAPI))
    with pytest.raises(InvalidArgument, match="no operation or tag 'nothing'"):
        async with open_openapi_source(str(document), base_url="http://127.0.0.1:9", select=["nothing"]):
            pass
    with pytest.raises(InvalidArgument, match="give the base URL"):
        async with open_openapi_source(str(document)):
            pass
    document.write_text("swagger: '2.0'\n")
    with pytest.raises(ConfigError, match="is no OpenAPI 3 document"):
        async with open_openapi_source(str(document)):
            pass
    document.write_text("a: [\n")
    with pytest.raises(ConfigError, match="neither JSON nor YAML"):
        async with open_openapi_source(str(document)):
            pass
    with pytest.raises(ConnectorUnavailable, match="cannot be reached"):
        async with open_openapi_source("http://127.0.0.1:9/openapi.json"):
            pass


@requirement("orchestrator:services:headers")
async def test_headers_never_follow_a_document_to_another_host(tmp_path: Path) -> None:
    document = {**OPENAPI, "servers": [{"url": "http://127.0.0.1:9/api"}]}

    async def elsewhere(request: Request) -> JSONResponse:
        return JSONResponse(document if request.url.path == "/o.json" else {"Swagger.DefinitionUrls": [OTHER]})

    app = Starlette(routes=[Route("/{path:path}", elsewhere)])
    with anyio.fail_after(10):
        async with serving(app) as port:
            location = f"http://127.0.0.1:{port}/o.json"
            with pytest.raises(InvalidArgument, match=r"'http://127.0.0.1:9/api', on another host"):
                async with open_openapi_source(location, headers=SECRET):
                    pass
            async with open_openapi_source(location) as source:
                assert await source.list_tools()
            async with open_openapi_source(location, headers=SECRET, base_url="http://127.0.0.1:9/api") as source:
                assert await source.list_tools()
            with pytest.raises(ConnectorUnavailable, match="names a document on another host"):
                async with open_ujmw_source(f"http://127.0.0.1:{port}/ujmw/IShop", headers=SECRET):
                    pass


@requirement("orchestrator:ujmw:operations")
async def test_operations_of_a_ujmw_service_come_from_the_document_it_names() -> None:
    shop = Shop()
    with anyio.fail_after(10):
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(serving(shop.app))
            async with open_ujmw_source(f"http://127.0.0.1:{port}/ujmw/IShop", headers=SECRET) as source:
                tools = {tool.name: tool for tool in await source.list_tools()}
                assert sorted(tools) == ["Buy", "Price"]
                assert json.loads(tools["Price"].input_schema_json) == {
                    "type": "object",
                    "properties": {"item": {"type": "string"}},
                    "required": ["item"],
                }
                price = await call(source, "Price", item="é")
                bought = await call(source, "Buy", item="a", count=2)
                void = await call(source, "Price", item="void")
                fault = await call(source, "Price", item="none")
                closed = await call(source, "Price", item="closed")
                odd = await call(source, "Price", item="odd")
    assert said(price) == "4.5"
    assert json.loads(bought.structured_content_json or "") == {"return": {"ok": True}, "left": 3}
    assert (said(void), void.is_error) == ("done", False)
    assert (said(fault), fault.is_error) == ("[unknown_item] There is no 'none'.", True)
    assert closed.is_error and "status 403" in said(closed)
    assert odd.is_error and "not JSON" in said(odd)
    method, path, _, type_, body, authorization = shop.seen[0]
    assert (method, path, authorization) == ("POST", "/ujmw/IShop/Price", "Bearer s")
    assert type_ == "application/json; charset=utf-8"
    assert json.loads(body) == {"item": "é"}


@requirement("orchestrator:ujmw:operations")
async def test_operations_of_a_ujmw_service_may_be_declared() -> None:
    shop = Shop()
    declared = [ToolDescriptor(name="Price", read_only=True), ToolDescriptor(name="Buy")]
    with anyio.fail_after(10):
        async with serving(shop.app) as port:
            url = f"http://127.0.0.1:{port}/ujmw/IShop/"
            async with open_ujmw_source(url, operations=declared, select=["Price"], prefix="shop_") as source:
                assert [(tool.name, tool.read_only) for tool in await source.list_tools()] == [("shop_Price", True)]
                assert said(await call(source, "shop_Price", item="a")) == "4.5"
            with pytest.raises(InvalidArgument, match="has no operation 'Sell'"):
                async with open_ujmw_source(url, operations=declared, select=["Sell"]):
                    pass
            with pytest.raises(ConnectorUnavailable, match="names no OpenAPI document"):
                async with open_ujmw_source(f"http://127.0.0.1:{port}/openapi.json"):
                    pass


@requirement("orchestrator:openapi:calls")
async def test_service_that_has_gone_is_an_error_result() -> None:
    with anyio.fail_after(10):
        async with serving(Shop().app) as port:
            url = f"http://127.0.0.1:{port}/openapi.json"
            async with open_openapi_source(url, base_url="http://127.0.0.1:9") as source:
                outcome = await call(source, "get_picture")
    assert outcome.is_error and "cannot be reached" in said(outcome)
