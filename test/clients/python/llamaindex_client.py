"""Drives a door with LlamaIndex.

    BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo EMBEDDER=embedder python llamaindex_client.py

Ends with "ok" and status 0, or with the assertion that did not hold.
"""

import os

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel, Field

where = {"api_base": os.environ["BASE_URL"], "api_key": "none", "max_retries": 0, "timeout": 300}
common = {"model": os.environ["MODEL"], "temperature": 0, "max_tokens": 200, "context_window": 2048, **where}
llm = OpenAILike(is_chat_model=True, is_function_calling_model=True, **common)


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.replace(",", " ").split()]


class Pair(BaseModel):
    """Two numbers."""

    a: int = Field(ge=0, le=99)
    b: int = Field(ge=0, le=99)


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def chat() -> None:
    answer = llm.chat([ChatMessage(role="user", content="Count from 3 to 14 by 1.")])
    assert numbers(answer.message.content) == list(range(3, 15)), answer
    pieces = [part.delta for part in llm.stream_chat([ChatMessage(role="user", content="Count from 1 to 30 by 1.")])]
    assert numbers("".join(pieces)) == list(range(1, 31)), pieces


def completion() -> None:
    plain = OpenAILike(is_chat_model=False, **{**common, "max_tokens": 5})
    answer = plain.complete("1, 2, 3,")
    assert answer.text, answer
    assert "".join(part.delta for part in plain.stream_complete("1, 2, 3,")) == answer.text


def tools() -> None:
    tool = FunctionTool.from_defaults(add)
    answer = llm.chat_with_tools([tool], user_msg="What is 23 + 45?", tool_required=True)
    (call, *_) = llm.get_tool_calls_from_response(answer)
    assert call.tool_name == "add" and sorted(call.tool_kwargs) == ["a", "b"], call
    assert tool(**call.tool_kwargs).raw_output == call.tool_kwargs["a"] + call.tool_kwargs["b"], call


def structured() -> None:
    pair = llm.structured_predict(Pair, PromptTemplate("Which numbers?"), llm_kwargs={"tool_choice": "required"})
    assert isinstance(pair, Pair), pair


def embeddings() -> None:
    model = OpenAILikeEmbedding(model_name=os.environ["EMBEDDER"], **where)
    rows = model.get_text_embedding_batch(["one", "two three", "one"])
    assert rows[0] == rows[2] != rows[1] and model.get_query_embedding("one") == rows[0], rows


if __name__ == "__main__":
    for step in (chat, completion, tools, structured, embeddings):
        step()
        print("passed:", step.__name__)
    print("ok")
