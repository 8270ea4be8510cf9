"""Drives a door with OpenAI's Agents SDK, over responses and over chats.

    BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo python agents_client.py

Ends with "ok" and status 0, or with the assertion that did not hold.
"""

import asyncio
import os

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel, Field

set_tracing_disabled(True)
client = AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key="none", max_retries=0, timeout=300)
models = [kind(model=os.environ["MODEL"], openai_client=client) for kind in (OpenAIResponsesModel, OpenAIChatCompletionsModel)]
greedy = ModelSettings(temperature=0, max_tokens=200)
called: list[tuple[int, int]] = []


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.replace(",", " ").split()]


@function_tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    called.append((a, b))
    return a + b


class Pair(BaseModel):
    a: int = Field(ge=0, le=99)
    b: int = Field(ge=0, le=99)


async def chat(model) -> None:
    agent = Agent(name="counter", model=model, model_settings=greedy)
    answer = await Runner.run(agent, "Count from 3 to 14 by 1.")
    assert numbers(answer.final_output) == list(range(3, 15)), answer.final_output


async def stream(model) -> None:
    agent = Agent(name="counter", model=model, model_settings=greedy)
    answer = Runner.run_streamed(agent, "Count from 1 to 30 by 1.")
    text = ""
    async for event in answer.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            text += event.data.delta
    assert numbers(text) == list(range(1, 31)) and answer.final_output == text, (text, answer.final_output)


async def structured(model) -> None:
    agent = Agent(name="pair", model=model, model_settings=greedy, output_type=Pair)
    answer = await Runner.run(agent, "Which numbers?")
    assert isinstance(answer.final_output, Pair), answer.final_output


async def tools(model) -> None:
    """The first turn must call the tool; the second carries its result back."""
    called.clear()
    settings = ModelSettings(temperature=0, max_tokens=200, tool_choice="required")
    agent = Agent(name="adder", model=model, model_settings=settings, tools=[add])
    answer = await Runner.run(agent, "What is 23 + 45?", max_turns=3)
    kinds = [item.type for item in answer.new_items]
    assert kinds[:2] == ["tool_call_item", "tool_call_output_item"] or "tool_call_output_item" in kinds, kinds
    results = [item.output for item in answer.new_items if item.type == "tool_call_output_item"]
    assert [str(r) for r in results] == [str(a + b) for a, b in called] and called, (results, called)
    assert isinstance(answer.final_output, str), answer.final_output


async def several(model) -> None:
    agent = Agent(name="counter", model=model, model_settings=greedy)
    answers = await asyncio.gather(*(Runner.run(agent, f"Count from {n} to {n + 5} by 1.") for n in range(1, 7)))
    assert [numbers(a.final_output) for a in answers] == [list(range(n, n + 6)) for n in range(1, 7)], answers


async def main() -> None:
    for model in models:
        for step in (chat, stream, structured, tools, several):
            await step(model)
            print("passed:", type(model).__name__, step.__name__)


if __name__ == "__main__":
    asyncio.run(main())
    print("ok")
