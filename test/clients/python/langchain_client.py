"""Drives a door with LangChain, as its users would.

    BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo EMBEDDER=embedder python langchain_client.py

Ends with "ok" and status 0, or with the assertion that did not hold.
"""

import os
from typing import Literal

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field

where = {"base_url": os.environ["BASE_URL"], "api_key": "none", "max_retries": 0, "timeout": 300}
llm = ChatOpenAI(model=os.environ["MODEL"], temperature=0, max_tokens=200, stream_usage=True, **where)


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.replace(",", " ").split()]


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=150)
    sign: Literal["cat", "dog"]


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def chat() -> None:
    answer = llm.invoke([SystemMessage("Be brief."), HumanMessage("Count from 3 to 14 by 1.")])
    assert isinstance(answer, AIMessage), answer
    assert answer.response_metadata["finish_reason"] == "stop", answer
    assert answer.usage_metadata["total_tokens"] == answer.usage_metadata["input_tokens"] + answer.usage_metadata["output_tokens"]


def chain() -> None:
    prompt = ChatPromptTemplate.from_messages([("user", "Count from {a} to {b} by 1.")])
    text = (prompt | llm | StrOutputParser()).invoke({"a": 1, "b": 12})
    assert numbers(text) == list(range(1, 13)), text


def batch() -> None:
    answers = llm.batch([f"Count from {n} to {n + 5} by 1." for n in range(1, 9)], config={"max_concurrency": 8})
    assert [numbers(a.content) for a in answers] == [list(range(n, n + 6)) for n in range(1, 9)], answers


def stream() -> None:
    whole = None
    for chunk in llm.stream("Count from 1 to 20 by 1."):
        whole = chunk if whole is None else whole + chunk
    assert numbers(whole.content) == list(range(1, 21)), whole
    assert whole.usage_metadata["output_tokens"] > 0, whole


def structured() -> None:
    for method in ("json_schema", "function_calling"):
        person = llm.with_structured_output(Person, method=method).invoke("Who is it?")
        assert isinstance(person, Person), (method, person)
    anything = llm.with_structured_output(None, method="json_mode").invoke("Say something as JSON.")
    assert isinstance(anything, dict), anything


def tools() -> None:
    calling = llm.bind_tools([add], tool_choice="any", parallel_tool_calls=False)
    question = HumanMessage("What is 23 + 45?")
    answer = calling.invoke([question])
    assert [c["name"] for c in answer.tool_calls] == ["add"], answer
    assert answer.response_metadata["finish_reason"] == "tool_calls", answer
    call = answer.tool_calls[0]
    result = add.invoke(call)
    assert isinstance(result, ToolMessage) and result.tool_call_id == call["id"], result
    after = llm.bind_tools([add]).invoke([question, answer, result])  # auto: the model may answer
    assert isinstance(after.content, str), after
    whole = None
    for chunk in calling.stream([question]):
        whole = chunk if whole is None else whole + chunk
    assert whole.tool_calls[0]["name"] == "add" and whole.tool_calls[0]["args"] == call["args"], whole


def responses() -> None:
    model = ChatOpenAI(model=os.environ["MODEL"], temperature=0, max_tokens=200, use_responses_api=True, **where)
    assert numbers(model.invoke("Count from 2 to 9 by 1.").text) == list(range(2, 10))
    text = "".join(chunk.text for chunk in model.stream("Count from 2 to 9 by 1."))
    assert numbers(text) == list(range(2, 10)), text
    calling = model.bind_tools([add], tool_choice="required")
    answer = calling.invoke("What is 1 + 2?")
    assert answer.tool_calls[0]["name"] == "add", answer
    after = model.invoke([HumanMessage("What is 1 + 2?"), answer, ToolMessage("3", tool_call_id=answer.tool_calls[0]["id"])])
    assert isinstance(after.text, str), after
    assert isinstance(model.with_structured_output(Person, method="json_schema").invoke("Who is it?"), Person)


def embeddings() -> None:
    model = OpenAIEmbeddings(model=os.environ["EMBEDDER"], check_embedding_ctx_length=False, **where)
    rows = model.embed_documents(["one", "two three", "one"])
    assert rows[0] == rows[2] != rows[1] and len(rows[0]) == len(rows[1]), rows
    alone = model.embed_query("one")
    assert alone == rows[0], (alone, rows[0])


if __name__ == "__main__":
    for step in (chat, chain, batch, stream, structured, tools, responses, embeddings):
        step()
        print("passed:", step.__name__)
    print("ok")
