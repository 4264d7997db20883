"""An MCP server over stdio that somebody else wrote, for delegation. Standard library only.

env     its environment, as JSON
echo    its argument `q`
ask     asks the user for a name (elicitation) and returns what came back
"""

import json
import os
import sys

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("env", "echo", "ask")]
FORM = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def ask():
    params = {"mode": "form", "message": "Your name?", "requestedSchema": FORM}
    send(id="ask-1", method="elicitation/create", params=params)
    while (message := read()).get("id") != "ask-1":
        pass
    return json.dumps(message["result"])


def call(name, arguments):
    if name == "env":
        return json.dumps(dict(os.environ))
    return ask() if name == "ask" else str(arguments.get("q"))


if __name__ == "__main__":
    while True:
        request = read()
        method, rpc_id = request.get("method"), request.get("id")
        if method == "initialize":
            info = {"name": "books", "version": "1"}
            version = request["params"]["protocolVersion"]
            send(id=rpc_id, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        elif method == "tools/list":
            send(id=rpc_id, result={"tools": TOOLS})
        elif method == "tools/call":
            text = call(request["params"]["name"], request["params"].get("arguments") or {})
            send(id=rpc_id, result={"content": [{"type": "text", "text": text}]})
        elif rpc_id is not None and method is not None:
            send(id=rpc_id, error={"code": -32601, "message": "Method not found"})
