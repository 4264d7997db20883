"""An ACP agent that opens sessions and then neither connects to MCP servers nor listens to a cancel.

deaf_agent.py      a prompt is never answered, unless its text begins with "Answer"
"""

import json
import sys


def say(message: dict[str, object]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            capabilities = {"mcpCapabilities": {"http": True}}
            say({"id": asked["id"], "result": {"protocolVersion": 1, "agentCapabilities": capabilities}})
        case "session/new":
            say({"id": asked["id"], "result": {"sessionId": "s"}})
        case "session/prompt" if asked["params"]["prompt"][-1]["text"].startswith("Answer"):
            say({"id": asked["id"], "result": {"stopReason": "end_turn"}})
        case _:
            pass
