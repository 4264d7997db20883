"""A tool source to delegate: an MCP server on stdin and stdout. Standard library only; run by path.

`change` changes something, `read` does not.
"""

import json
import sys
from typing import Any

TOOLS = [
    {"name": "change", "description": "Changes.", "inputSchema": {"type": "object", "properties": {"a": {}}}},
    {
        "name": "read",
        "description": "Reads.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
]


def reply_to(message: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; null for a notification."""
    match message.get("method"):
        case "initialize":
            version = message["params"]["protocolVersion"]
            about = {"name": "small", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            arguments = message["params"].get("arguments") or {}
            done = f"changed {arguments.get('a')}" if message["params"]["name"] == "change" else "read"
            return {"content": [{"type": "text", "text": done}]}
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
