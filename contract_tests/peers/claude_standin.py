"""A Claude CLI that misbehaves on order, over its real wire: each user message is a JSON list of steps.

    text:TEXT          one message of the model
    line:N             a message whose single line has N bytes, with line separators and four-byte characters in it
    call:N             N parallel calls of the tool "look", answered before the next step
    stderr:N           write N bytes to stderr
    garbage            lines that are no JSON, and one of an unknown type
    pieces             write everything from now on in pieces of 7 bytes
    grandchild         start a process in a session of its own; its pid is the message
    deaf               ignore SIGTERM and interrupts from now on
    ask:NAME           ask whether the tool NAME may run; the answer's behaviour is the message
    unasked:NAME       the model calls the tool NAME, and nothing comes of it
    hang               never answer; an interrupt ends it unless deaf
    half-line-die      write half a line and be killed
    exit:CODE          leave

Standard library only. A second process of the same conversation starts like the first.
"""

import json
import os
import signal
import subprocess
import sys
from collections import deque

SLEEPER = [sys.executable, "-I", "-S", "-c", "import signal\nwhile True: signal.pause()"]
inbox = deque()
answers = {}
state = {"tail": b"", "deaf": False, "interrupt": None, "pieces": False, "n": 0, "tools": []}


def write(data):
    size = 7 if state["pieces"] else len(data)
    for start in range(0, len(data), size):
        view = memoryview(data)[start : start + size]
        while view:
            view = view[os.write(1, view) :]


def put(*messages):
    for message in messages:
        write(json.dumps(message, ensure_ascii=False).encode() + b"\n")


def read():
    """Handles what has arrived; blocks until something does."""
    data = os.read(0, 1 << 20)
    if not data:
        sys.exit(0)
    *lines, state["tail"] = (state["tail"] + data).split(b"\n")
    for line in lines:
        message = json.loads(line)
        if message["type"] == "control_request":
            control(message["request_id"], message["request"])
        elif message["type"] == "control_response":
            answers[message["response"]["request_id"]] = message["response"]
        else:
            inbox.append(message["message"]["content"])


def control(request_id, request):
    if request["subtype"] == "interrupt":
        state["interrupt"] = request_id
        if state["deaf"]:
            return
    body = {}
    if request["subtype"] == "initialize":
        manifest = request.get("sdkMcpServerManifests", {}).get("host", {})
        tools = manifest.get("toolsListResult", {}).get("tools", [])
        state["tools"] = ["mcp__host__" + tool["name"] for tool in tools]
        body = {"claude_code_version": "2.1.332", "account": {"apiKeySource": "ANTHROPIC_API_KEY"}}
    put({"type": "control_response", "response": {"subtype": "success", "request_id": request_id, "response": body}})


def stream(event):
    put({"type": "stream_event", "event": event, "parent_tool_use_id": None})


def message(*blocks, stop="end_turn"):
    state["n"] += 1
    name = f"msg_{os.getpid()}_{state['n']}"
    stream({"type": "message_start", "message": {"id": name, "content": []}})
    for index, block in enumerate(blocks):
        is_text = block["type"] == "text"
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if is_text
            else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        )
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        stream({"type": "content_block_start", "index": index, "content_block": empty})
        stream({"type": "content_block_delta", "index": index, "delta": delta})
        body = {"id": name, "model": "standin", "content": [block], "stop_reason": None}
        put({"type": "assistant", "message": body, "parent_tool_use_id": None})
        stream({"type": "content_block_stop", "index": index})
    stream({"type": "message_delta", "delta": {"stop_reason": stop}})
    stream({"type": "message_stop"})


def call(count):
    state["n"] += 1
    ids = [f"toolu_{os.getpid()}_{state['n']}_{number}" for number in range(count)]
    blocks = [{"type": "tool_use", "id": one, "name": "mcp__host__look", "input": {"q": "same"}} for one in ids]
    message(*blocks, stop="tool_use")
    for number, one in enumerate(ids):
        params = {"name": "look", "arguments": {"q": "same"}, "_meta": {"claudecode/toolUseId": one}}
        rpc = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        request = {"subtype": "mcp_message", "server_name": "host", "message": rpc}
        put({"type": "control_request", "request_id": one, "request": request})
    while not all(one in answers for one in ids) and state["interrupt"] is None:
        read()
    said = [answers[one]["response"]["mcp_response"]["result"] for one in ids if one in answers]
    return " ".join(result["content"][0]["text"] for result in said)


def ask(name):
    state["n"] += 1
    one = f"toolu_{os.getpid()}_{state['n']}"
    message({"type": "tool_use", "id": one, "name": name, "input": {"command": "ls"}}, stop="tool_use")
    asked = {"subtype": "can_use_tool", "tool_name": name, "input": {"command": "ls"}, "tool_use_id": one}
    put({"type": "control_request", "request_id": "ask_" + one, "request": asked})
    while "ask_" + one not in answers and state["interrupt"] is None:
        read()
    return answers["ask_" + one]["response"]["behavior"] if "ask_" + one in answers else "nothing"


def hang():
    while state["interrupt"] is None or state["deaf"]:
        read()


def step(order):
    """Does one step; returns a message of the model, or nothing."""
    name, _, rest = order.partition(":")
    if name == "text":
        return rest
    if name == "line":
        pattern = "\u2028\u2029\u0085\U0001f600 x"
        size = len(pattern.encode())
        return pattern * (int(rest) // size)
    if name == "call":
        return "results: " + call(int(rest))
    if name == "ask":
        return ask(rest)
    if name == "unasked":
        state["n"] += 1
        one = f"toolu_{os.getpid()}_{state['n']}"
        message({"type": "tool_use", "id": one, "name": rest, "input": {}}, stop="tool_use")
    if name == "stderr":
        os.set_blocking(2, True)
        sys.stderr.write("e" * int(rest))
        sys.stderr.flush()
    elif name == "garbage":
        write(b"Warning: not json\n\xff\xfe\n[1]\n")
        put({"type": "brand_new_event", "x": 1})
    elif name == "pieces":
        state["pieces"] = True
    elif name == "grandchild":
        return str(subprocess.Popen(SLEEPER, start_new_session=True, stdout=2, stdin=subprocess.DEVNULL).pid)
    elif name == "deaf":
        state["deaf"] = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif name == "hang":
        hang()
    elif name == "half-line-die":
        write(b'{"type":"assistant","message":{"con')
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "exit":
        sys.stderr.write("giving up\n")
        sys.stderr.flush()
        os._exit(int(rest))
    return None


def turn(content):
    state["interrupt"] = None
    put({"type": "system", "subtype": "session_state_changed", "state": "running"})
    begun = {"session_id": "s", "tools": state["tools"], "claude_code_version": "2.1.332"}
    put({"type": "system", "subtype": "init", **begun})
    for order in json.loads(content if isinstance(content, str) else content[0]["text"]):
        said = step(order)
        if said is not None and state["interrupt"] is None:
            message({"type": "text", "text": said})
    cut = state["interrupt"] is not None
    end = {"subtype": "error_during_execution", "terminal_reason": "aborted_tools", "is_error": True}
    good = {"subtype": "success", "terminal_reason": "completed", "is_error": False, "stop_reason": "end_turn"}
    put(
        {
            "type": "result",
            "result": "",
            "modelUsage": {},
            "model_usage_since_last_result": {},
            **(end if cut else good),
        }
    )
    put({"type": "system", "subtype": "session_state_changed", "state": "idle"})


if __name__ == "__main__":
    if "--version" in sys.argv:
        sys.stdout.write("2.1.332 (Claude Code)\n")
        sys.exit(0)
    while True:
        while not inbox:
            read()
        turn(inbox.popleft())
