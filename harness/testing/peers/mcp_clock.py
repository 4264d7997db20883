"""A tool source to delegate: an MCP server on stdin and stdout with one tool. Standard library only; run by path."""

from __future__ import annotations

import json
import sys
from typing import Any

ANSWER = "a quarter past four"
TOOL: dict[str, Any] = {
    "name": "what_time",
    "description": "The time of day.",
    "inputSchema": {"type": "object", "properties": {}},
    "annotations": {"readOnlyHint": True},
}


def reply_to(message: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; null for a notification."""
    match message.get("method"):
        case "initialize":
            version = message["params"]["protocolVersion"]
            about = {"name": "clocks", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": ANSWER}]}
        case _:
            return {} if "id" in message else None


def main() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        result = reply_to(message)
        if result is not None:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
