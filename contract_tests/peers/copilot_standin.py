"""A Copilot in the mode of its SDKs, whose model does what the user's text says, and mostly nothing:

    Answer         ends the turn
    Told           says with what it was started: its environment, and what the session was opened with
    Ask            asks to run a command, and ends the turn when it may
    AskAndHang     asks to run a command, and that is all
    Call           has the model call a tool, and that is all

It stops when it is told to abort. It has an earlier session while the file with its id is in COPILOT_HOME. With
--version it prints one.
"""

import json
import os
import sys
from pathlib import Path

opened: dict[str, object] = {}
asking = ""


def say(message: dict[str, object]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    sys.stdout.buffer.flush()


def event(kind: str, **data: object) -> None:
    params = {"sessionId": opened["sessionId"], "event": {"type": kind, "data": data}}
    say({"method": "session.event", "params": params})


def said(text: str, *calls: dict[str, object]) -> None:
    event("assistant.message", messageId="message-1", content=text, toolRequests=list(calls))


def prompted(word: str) -> None:
    call = {"toolCallId": "call_1", "name": "bash", "arguments": {"command": "ls"}}
    match word:
        case "Told":
            said(json.dumps({"env": dict(os.environ), "opened": opened}))
        case "Ask" | "AskAndHang":
            said("", call)
            shown = {"kind": "shell", "toolCallId": "call_1", "fullCommandText": "ls"}
            event("permission.requested", requestId="permission-1", permissionRequest=shown)
        case "Call":
            said("", call)
        case _:
            pass
    if word in ("Answer", "Told"):
        event("session.idle")


if "--version" in sys.argv:
    print("1.0.102")
    sys.exit()
while head := sys.stdin.buffer.readline():
    sys.stdin.buffer.readline()
    asked = json.loads(sys.stdin.buffer.read(int(head.split(b":")[1])))
    result: dict[str, object] = {}
    word = ""
    match asked.get("method"):
        case "connect":
            result = {"ok": True, "protocolVersion": 3, "version": "1.0.102"}
        case "session.create" | "session.resume":
            opened = asked["params"]
            session_id = str(opened["sessionId"])
            kept = Path(os.environ["COPILOT_HOME"]) / session_id
            if asked["method"] == "session.resume" and not kept.exists():
                say({"id": asked["id"], "error": {"code": -32603, "message": f"Session not found: {session_id}"}})
                continue
            kept.touch()
            result = {"sessionId": session_id}
        case "session.send":
            word = asking = asked["params"]["prompt"].split(".")[0]
        case _:
            pass
    say({"id": asked["id"], "result": result})
    if word:
        prompted(word)
    if asked["method"] == "session.abort":
        event("session.idle", aborted=True)
    elif asked["method"].endswith("handlePendingPermissionRequest") and asking == "Ask":
        event("session.idle")
