"""An ACP agent that opens sessions and then neither connects to MCP servers nor listens to a cancel.

deaf_agent.py      a prompt is never answered, but for those whose text begins with one of these words:

    Answer         nothing is said
    Told           says with what it was started: its environment, and what the session was opened with
    Ask            asks for a permission, and answers the prompt when it has one
    AskAndHang     asks for a permission, and that is all
    Call           tells of a call that nothing comes of

With --version it prints one. An earlier session it does not have.
"""

import json
import os
import sys

opened: dict[str, object] = {}
prompt_id: object = None
OPTIONS = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}, {"optionId": "no", "name": "No", "kind": "deny"}]


def say(message: dict[str, object]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(kind: str, **fields: object) -> None:
    say({"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": kind, **fields}}})


def end() -> None:
    say({"id": prompt_id, "result": {"stopReason": "end_turn"}})


def prompted(word: str) -> None:
    match word:
        case "Told":
            told = {"env": dict(os.environ), "opened": opened}
            update("agent_message_chunk", content={"type": "text", "text": json.dumps(told)})
        case "Ask" | "AskAndHang":
            call = {"toolCallId": "call_1", "title": "bash", "kind": "execute", "rawInput": {"command": "ls"}}
            params = {"sessionId": "s", "toolCall": call, "options": OPTIONS}
            say({"id": word, "method": "session/request_permission", "params": params})
        case "Call":
            raw = {"command": "ls"}
            update("tool_call", toolCallId="call_1", title="bash", status="in_progress", rawInput=raw)
        case _:
            pass
    if word in ("Answer", "Told"):
        end()


if "--version" in sys.argv:
    print("1.0.102")
    sys.exit()
for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            capabilities = {"mcpCapabilities": {"http": True}}
            say({"id": asked["id"], "result": {"protocolVersion": 1, "agentCapabilities": capabilities}})
        case "session/new":
            opened = asked["params"]
            say({"id": asked["id"], "result": {"sessionId": "s"}})
        case "session/load" | "session/resume":
            say({"id": asked["id"], "error": {"code": -32002, "message": "Resource not found"}})
        case "session/prompt":
            prompt_id = asked["id"]
            prompted(asked["params"]["prompt"][-1]["text"].split(".")[0])
        case None if asked["id"] == "Ask":
            end()
        case _:
            pass
