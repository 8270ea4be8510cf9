"""Drives a door with Pydantic AI, over chats and over responses.

    BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo python pydanticai_client.py

Ends with "ok" and status 0, or with the assertion that did not hold.
"""

import asyncio
import os
from typing import Literal

import openai
from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

client = openai.AsyncOpenAI(base_url=os.environ["BASE_URL"], api_key="none", max_retries=0, timeout=300)
provider = OpenAIProvider(openai_client=client)
models = [kind(os.environ["MODEL"], provider=provider) for kind in (OpenAIChatModel, OpenAIResponsesModel)]
greedy = {"temperature": 0, "max_tokens": 200}


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.replace(",", " ").split()]


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=150)
    sign: Literal["cat", "dog"]


async def chat(model) -> None:
    answer = await Agent(model, model_settings=greedy).run("Count from 3 to 14 by 1.")
    assert numbers(answer.output) == list(range(3, 15)), answer.output
    usage = answer.usage
    assert usage.input_tokens > 0 and usage.output_tokens > 0, usage


async def stream(model) -> None:
    async with Agent(model, model_settings=greedy).run_stream("Count from 1 to 30 by 1.") as answer:
        text = "".join([piece async for piece in answer.stream_text(delta=True)])
    assert numbers(text) == list(range(1, 31)), text


async def structured(model) -> None:
    for kind in (NativeOutput, ToolOutput):
        answer = await Agent(model, output_type=kind(Person), model_settings=greedy).run("Who is it?")
        assert isinstance(answer.output, Person), (kind, answer.output)


async def tools(model) -> None:
    called = []
    agent = Agent(model, model_settings=greedy, output_type=ToolOutput(Person))

    @agent.tool_plain
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        called.append((a, b))
        return a + b

    answer = await agent.run("What is 23 + 45?", usage_limits=UsageLimits(request_limit=20))
    assert isinstance(answer.output, Person), answer.output


async def main() -> None:
    for model in models:
        for step in (chat, stream, structured, tools):
            await step(model)
            print("passed:", type(model).__name__, step.__name__)


if __name__ == "__main__":
    asyncio.run(main())
    print("ok")
