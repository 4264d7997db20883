"""`ChatOpenAI` of `langchain-openai` with a tool bound to it; nothing is told to LangSmith, which asks for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

from contract_tests.surfaces.clients.lines import DESCRIPTION, INSTRUCTIONS, Line, Said


class LangChain:
    uses_responses = False
    goes_on_by_id = False

    def __init__(self, line: Line) -> None:
        self._client = line.openai_client()
        self._tool = StructuredTool.from_function(
            coroutine=line.weather.tool(), name="get_weather", description=DESCRIPTION
        )
        chat = ChatOpenAI(
            model=line.model,
            async_client=self._client.chat.completions,
            root_async_client=self._client,
            api_key=line.key,  # type: ignore[arg-type]
            base_url=f"{line.url}/openai/v1",
            use_responses_api=self.uses_responses,
            use_previous_response_id=self.goes_on_by_id,
        )
        self._model = chat.bind_tools([self._tool])

    async def ask(self, prompt: str, history: Sequence[Any] = (), *, streams: bool = False) -> Said:
        messages: list[Any] = [*(history or [SystemMessage(INSTRUCTIONS)]), HumanMessage(prompt)]
        while True:
            pieces: list[str] = []
            message = await (self._streamed(messages, pieces) if streams else self._model.ainvoke(messages))
            messages.append(message)
            if not message.tool_calls:
                return Said(message.text, messages, pieces)
            messages += [await self._tool.ainvoke(call) for call in message.tool_calls]

    async def leave(self, prompt: str) -> None:
        async for chunk in self._model.astream(prompt):
            if chunk.text:
                return

    async def close(self) -> None:
        await self._client.close()

    async def _streamed(self, messages: Sequence[Any], pieces: list[str]) -> AIMessage:
        whole: Any = None
        async for chunk in self._model.astream(messages):
            whole = chunk if whole is None else whole + chunk
            if chunk.text:
                pieces.append(chunk.text)
        return whole


class LangChainResponses(LangChain):
    uses_responses = True


class LangChainById(LangChainResponses):
    """It sends what is new and names the response before."""

    goes_on_by_id = True
