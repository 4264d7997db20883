"""Ask whoever you name: python examples/ask.py fake | claude | http://127.0.0.1:8800"""

import sys

from harness import connect, run_to_completion_sync, tool

# The second line is for the connector 'fake', which is no model: it does what such lines say.
QUESTION = 'What is the weather in Oslo? Use the tool.\ncall get_weather {"city": "Oslo"}'


@tool(read_only=True)
def get_weather(city: str) -> str:
    """The weather in a city, now."""
    return f"3 °C and rain in {city}"


print(run_to_completion_sync(connect(sys.argv[1]), QUESTION, tools=[get_weather], check=True).content)
