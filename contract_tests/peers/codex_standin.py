"""A Codex whose model does what the user's text says, and mostly nothing:

    Answer         ends the turn
    Told           says with what it was started: its environment, and what the thread was opened with
    Ask            asks to run a command, and ends the turn when it may
    AskAndHang     asks to run a command, and that is all
    Call           has the model call a tool, and that is all

It stops when it is interrupted. With --version it prints one.
"""

import json
import os
import sys

TURN = "turn-1"
opened: dict[str, object] = {}


def say(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


def notify(method: str, **params: object) -> None:
    say({"method": method, "params": {"threadId": "thread-1", "turnId": TURN, **params}})


def end(status: str = "completed") -> None:
    notify("turn/completed", turn={"id": TURN, "status": status, "error": None})


def called() -> None:
    arguments = json.dumps({"cmd": "ls"})
    item = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": "call_1"}
    notify("rawResponseItem/completed", item=item)


def prompted(word: str) -> None:
    match word:
        case "Told":
            told = json.dumps({"env": dict(os.environ), "opened": opened})
            message = {"type": "agentMessage", "id": "message-1", "text": told, "phase": "final_answer"}
            notify("item/completed", item=message)
        case "Ask" | "AskAndHang":
            called()
            params = {"threadId": "thread-1", "turnId": TURN, "itemId": "call_1", "command": "ls"}
            say({"id": word, "method": "item/commandExecution/requestApproval", "params": params})
        case "Call":
            called()
        case _:
            pass
    if word in ("Answer", "Told"):
        end()


if "--version" in sys.argv:
    print("codex-cli 0.171.0")
    sys.exit()
for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            say({"id": asked["id"], "result": {"userAgent": "level2-harness/0.171.0 (Linux)"}})
        case "thread/start":
            opened = asked["params"]
            say({"id": asked["id"], "result": {"thread": {"id": "thread-1", "turns": []}, "model": "m"}})
        case "turn/start":
            say({"id": asked["id"], "result": {"turn": {"id": TURN, "status": "inProgress"}}})
            prompted(asked["params"]["input"][-1]["text"].split(".")[0])
        case "turn/interrupt":
            say({"id": asked["id"], "result": {}})
            end("interrupted")
        case None if asked["id"] == "Ask":
            end()
        case _:
            pass
