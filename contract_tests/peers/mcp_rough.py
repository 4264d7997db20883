"""An MCP server that misbehaves on order, over stdio. Each tool does what it is called.

    echo         gives its arguments back
    die          writes to stderr and is gone in the middle of the call
    children     starts a process of its own group; its pid is the result
    pid          its own pid
    drop         takes itself off the list, and says so

`--garbage` writes lines that are no messages first, `--mute` never answers, `--rename` lists other tools when it is
started for the second time (a file remembers). Standard library only.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

SLEEPER = [sys.executable, "-I", "-S", "-c", "import signal\nwhile True: signal.pause()"]
names = ["children", "die", "drop", "echo", "pid"]
if "--rename" in sys.argv:
    marker = Path(sys.argv[sys.argv.index("--rename") + 1])
    if marker.exists():
        names.remove("echo")
    marker.touch()


def put(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(name, arguments):
    if name == "die":
        sys.stderr.write(f"Traceback: the disk is on fire {os.environ.get('ROUGH_TOKEN')}\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "children":
        return subprocess.Popen(SLEEPER, start_new_session=True).pid
    if name == "drop":
        names.remove("drop")
        put({"method": "notifications/tools/list_changed"})
    return os.getpid() if name == "pid" else arguments


if "--garbage" in sys.argv:
    sys.stdout.write("Listening ...\n\n{}\n")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "--mute" in sys.argv:
        continue
    method = message["method"]
    if method == "initialize":
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "rough", "version": "1"},
        }
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
    elif method == "tools/call":
        value = call(message["params"]["name"], message["params"].get("arguments"))
        result = {"content": [{"type": "text", "text": json.dumps(value)}]}
    else:
        put({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})
        continue
    put({"id": message["id"], "result": result})
