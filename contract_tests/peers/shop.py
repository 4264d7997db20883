"""A small service on a LAN: an OpenAPI document and its operations, and the same shop as UJMW (Starlette)."""

from __future__ import annotations

import json
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

ITEM = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "note": {"type": "string", "nullable": True},
        "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Item"}},
        "price": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
    },
    "required": ["name"],
}


def document(body: Any, *parameters: Any, **members: Any) -> Any:
    content = {"content": {"application/json": {"schema": body}}, "required": True} if body else None
    return {"parameters": list(parameters), **({"requestBody": content} if content else {}), **members}


SHELF = {"name": "shelf", "in": "path", "required": True, "schema": {"type": "string"}}
OPENAPI = {
    "openapi": "3.0.3",
    "servers": [{"url": "/api"}],
    "paths": {
        "/shelves/{shelf}/items": {
            "parameters": [{"$ref": "#/components/parameters/Shelf"}],
            "get": document(
                None,
                {"name": "tag", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                {"name": "X-Trace", "in": "header", "description": "For the log.", "schema": {"type": "string"}},
                operationId="list.items",
                summary="Lists items.",
                tags=["read"],
            ),
            "post": document({"$ref": "#/components/schemas/Item"}, operationId="addItem", tags=["write"]),
        },
        "/picture": {"get": document(None, tags=["read"])},
        "/moved": {"get": document(None, operationId="moved")},
        "/broken": {"delete": document(None, operationId="broken")},
    },
    "components": {"schemas": {"Item": ITEM, "Unused": {}}, "parameters": {"Shelf": SHELF}},
}
UJMW = {
    "openapi": "3.0.1",
    "paths": {
        f"/ujmw/IShop/{name}": {"post": document({"$ref": f"#/components/schemas/{name}Request"}, summary=f"{name}.")}
        for name in ("Price", "Buy")
    }
    | {"/api/other": {"post": document({"type": "object"})}},
    "components": {
        "schemas": {
            "PriceRequest": {
                "type": "object",
                "properties": {"item": {"type": "string"}, "_": {"type": "object"}},
                "required": ["item"],
            },
            "BuyRequest": {"type": "object", "properties": {"item": {"type": "string"}, "count": {"type": "integer"}}},
        }
    },
}
INFORMATION = {"ServiceEndpoints": [], "Swagger.DefinitionUrls": ["/swagger.json"]}


class Shop:
    """The service and every request it saw: method, path, query, content type, body, authorization."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str, str | None, str, str | None]] = []
        each = ["GET", "POST", "DELETE"]
        self.app = Starlette(
            routes=[
                Route("/openapi.json", self.give(OPENAPI)),
                Route("/swagger.json", self.give(UJMW)),
                Route("/ujmw/IShop", self.give(INFORMATION)),
                Route("/ujmw/IShop/{operation}", self.ujmw, methods=["POST"]),
                Route("/api/{path:path}", self.api, methods=each),
            ]
        )

    def give(self, value: Any) -> Any:
        async def answer(request: Request) -> Response:
            return JSONResponse(value)

        return answer

    async def note(self, request: Request) -> str:
        body = (await request.body()).decode()
        path = request.scope["raw_path"].decode().partition("?")[0]
        type_, authorization = request.headers.get("content-type"), request.headers.get("authorization")
        self.seen.append((request.method, path, request.url.query, type_, body, authorization))
        return body

    async def api(self, request: Request) -> Response:
        await self.note(request)
        match request.path_params["path"]:
            case "picture":
                return Response(b"\x89PNG", media_type="image/png")
            case "moved":
                return RedirectResponse("http://127.0.0.1:9/elsewhere")
            case "broken":
                return PlainTextResponse("out of order", status_code=503)
            case _:
                return JSONResponse({"items": ["ø"]})

    async def ujmw(self, request: Request) -> Response:
        arguments = json.loads(await self.note(request))
        match request.path_params["operation"], arguments:
            case "Price", {"item": "void"}:
                return JSONResponse({"fault": None})
            case "Price", {"item": "none"}:
                return JSONResponse({"fault": "[unknown_item] There is no 'none'."})
            case "Price", {"item": "closed"}:
                return PlainTextResponse("closed", status_code=403)
            case "Price", {"item": "odd"}:
                return PlainTextResponse("<html>")
            case "Price", _:
                return JSONResponse({"return": 4.5, "fault": "", "_": {"a": "b"}})
            case _:
                return JSONResponse({"return": {"ok": True}, "left": 3})
