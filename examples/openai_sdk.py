"""The `openai` package on any agent: python examples/openai_sdk.py URL TOKEN

URL and TOKEN are what `harness serve --connector fake --print-token` tells; `pip install openai` brings the package.
"""

import json
import sys
from typing import Any

from openai import OpenAI

URL, TOKEN = sys.argv[1:]
# The second line is for the connector 'fake', which is no model: it does what such lines say.
QUESTION = 'What is the weather in Oslo? Use the tool.\ncall get_weather {"city": "Oslo"}'
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}


def get_weather(city: str) -> str:
    return f"3 °C and rain in {city}"


with OpenAI(base_url=f"{URL}/openai/v1", api_key=TOKEN) as client:
    model = client.models.list().data[0].id
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    while messages[-1]["role"] != "assistant":
        message = client.chat.completions.create(model=model, messages=messages, tools=[TOOL]).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        calls: list[Any] = [*(message.tool_calls or [])]
        for call in calls:
            result = get_weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
print(messages[-1]["content"])
