"""A person at the HTTP inbox, in a process of their own: sees what waits and allows it once (`inbox.py URL TOKEN`).

Standard library only.
"""

import json
import sys
import urllib.request

url, token = sys.argv[1:]
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with opener.open(urllib.request.Request(url + path, data, headers)) as answer:
        return json.loads(answer.read() or b"{}")


for waiting in ask("/v1/requests")["requests"]:
    request = waiting["request"]
    path = f"/v1/conversations/{waiting['conversation_id']}/turns/{waiting['turn_id']}/responses"
    ask(path, {"responses": [{"request_id": request["request_id"], "selected_option": "allow_once"}]})
    print(request["tool_name"], request["arguments_json"])
