"""A client that knows only /openapi.json: python examples/stranger_client.py URL TOKEN

URL and TOKEN are what `harness serve --connector fake --print-token` tells.
"""

import json
import sys
from urllib.request import Request, urlopen

URL, TOKEN = sys.argv[1:]
# The second line is for the connector 'fake', which is no model: it does what such lines say.
QUESTION = 'What is the weather in Oslo? Use the tool.\ncall get_weather {"city": "Oslo"}'
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"name": "get_weather", "description": "The weather in a city.", "input_schema_json": json.dumps(SCHEMA)}


def call(method, path, body=None):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with urlopen(Request(URL + path, json.dumps(body).encode() if body else None, headers, method=method)) as answer:
        return json.loads(answer.read() or "null")


def answer_to(request):
    text = f"3 degrees and rain in {json.loads(request['arguments_json'])['city']}"
    return {"request_id": request["request_id"], "content": [{"type": "text", "text": text}]}


conversation = "/v1/conversations/" + call("POST", "/v1/conversations", {"tools": [TOOL]})["conversation_id"]
message = {"content": [{"type": "text", "text": QUESTION}]}
turn = conversation + "/turns/" + call("POST", f"{conversation}/turns", message)["turn_id"]
state = {"status": "running", "sequence_no": 0}
while state["status"] in ("running", "awaiting_host"):
    state = call("GET", f"{turn}?since_sequence_no={state['sequence_no']}&max_wait_ms=30000")
    for item in state["new_output_items"]:
        print(item["text"] if item["kind"] == "text_delta" else "", end="", flush=True)
    if state["pending_requests"]:
        call("POST", f"{turn}/responses", {"responses": [answer_to(one) for one in state["pending_requests"]]})
print()
call("DELETE", conversation)
sys.exit(state["error"]["message"] if state.get("error") else 0)
