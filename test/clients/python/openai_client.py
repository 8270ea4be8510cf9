"""Drives a door with openai-python, as its users would.

    BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo EMBEDDER=embedder python openai_client.py

Ends with "ok" and status 0, or with the assertion that did not hold.
"""

import json
import os

import openai
from pydantic import BaseModel

client = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key="none", max_retries=0, timeout=300)
model = os.environ["MODEL"]


def count(a: int, b: int) -> str:
    return f"Count from {a} to {b} by 1."


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.replace(",", " ").split()]


def chat() -> None:
    answer = client.chat.completions.create(
        model=model, temperature=0, messages=[{"role": "user", "content": count(1, 12)}]
    )
    choice = answer.choices[0]
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-"), answer
    assert choice.message.role == "assistant" and choice.finish_reason == "stop", choice
    assert numbers(choice.message.content) == list(range(1, 13)), choice.message.content
    usage = answer.usage
    assert usage.prompt_tokens > 0 and usage.completion_tokens > 0, usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage


def stream() -> None:
    events = list(
        client.chat.completions.create(
            model=model,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
            messages=[{"role": "user", "content": count(1, 30)}],
        )
    )
    text = "".join(e.choices[0].delta.content or "" for e in events if e.choices)
    assert numbers(text) == list(range(1, 31)), text
    assert len({e.id for e in events}) == 1, "one stream has one id"
    assert len({e.created for e in events}) == 1, "one stream has one creation time"
    assert events[0].choices[0].delta.role == "assistant", events[0]
    finish = [e.choices[0].finish_reason for e in events if e.choices]
    assert finish[-1] == "stop" and not any(finish[:-1]), finish
    assert events[-1].choices == [] and events[-1].usage.completion_tokens > 0, events[-1]
    for event in events:  # nothing that the client did not ask for
        for choice in event.choices:
            assert not getattr(choice, "token_ids", None), choice


def stream_without_usage() -> None:
    events = list(
        client.chat.completions.create(
            model=model, temperature=0, stream=True, messages=[{"role": "user", "content": count(1, 5)}]
        )
    )
    assert all(e.choices for e in events), "no usage event was asked for"
    assert all(e.usage is None for e in events), "no usage was asked for"


def completion() -> None:
    answer = client.completions.create(model=model, prompt="1, 2, 3,", max_tokens=5, temperature=0)
    assert answer.object == "text_completion" and answer.choices[0].text, answer
    assert answer.choices[0].finish_reason in ("length", "stop"), answer
    assert answer.usage.completion_tokens <= 5, answer.usage
    parts = list(client.completions.create(model=model, prompt="1, 2, 3,", max_tokens=5, temperature=0, stream=True))
    assert "".join(p.choices[0].text for p in parts if p.choices) == answer.choices[0].text, parts


def seeds() -> None:
    def ask(seed: int) -> str:
        return client.completions.create(model=model, prompt="A", max_tokens=24, temperature=1.0, seed=seed).choices[0].text

    assert ask(7) == ask(7), "a seed gives the same answer twice"
    assert len({ask(s) for s in range(6)}) > 1, "seeds differ"


def stop_string() -> None:
    answer = client.chat.completions.create(
        model=model, temperature=0, stop=["5"], messages=[{"role": "user", "content": count(1, 12)}]
    )
    assert answer.choices[0].finish_reason == "stop" and "5" not in answer.choices[0].message.content, answer


def several() -> None:
    answer = client.completions.create(model=model, prompt="A", max_tokens=8, temperature=1.0, seed=1, n=3)
    assert sorted(c.index for c in answer.choices) == [0, 1, 2], answer


def models() -> None:
    listed = client.models.list()
    assert model in [m.id for m in listed], listed
    assert client.models.retrieve(model).id == model


class Person(BaseModel):
    name: str
    age: int
    cat: bool


number = {"type": "integer", "minimum": 0, "maximum": 99}
schema = {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"], "additionalProperties": False}
question = {"role": "user", "content": "What is 23 + 45?"}


def tools() -> None:
    add = {"type": "function", "function": {"name": "add", "parameters": schema}}
    asked = {"model": model, "temperature": 0, "max_tokens": 100, "messages": [question], "tools": [add], "tool_choice": "required"}
    answer = client.chat.completions.create(**asked).choices[0]
    assert answer.finish_reason == "tool_calls" and answer.message.tool_calls[0].function.name == "add", answer
    call = answer.message.tool_calls[0]
    assert sorted(json.loads(call.function.arguments)) == ["a", "b"], call
    events = list(client.chat.completions.create(stream=True, **asked))
    pieces = [t for e in events for c in e.choices for t in c.delta.tool_calls or [] if t.index == 0]
    assert "".join(p.function.arguments or "" for p in pieces) == call.function.arguments, pieces
    assert [p.function.name for p in pieces if p.function.name] == ["add"], pieces
    turns = [question, answer.message, {"role": "tool", "tool_call_id": call.id, "content": "68"}]
    after = client.chat.completions.create(model=model, temperature=0, messages=turns, tools=[add], max_tokens=20)
    assert after.choices[0].message.role == "assistant", after


def structured() -> None:
    answer = client.chat.completions.parse(
        model=model, temperature=0, max_tokens=200, messages=[{"role": "user", "content": "Who is it?"}], response_format=Person
    )
    assert isinstance(answer.choices[0].message.parsed, Person), answer
    with client.chat.completions.stream(
        model=model, temperature=0, max_tokens=200, messages=[{"role": "user", "content": "Who is it?"}], response_format=Person
    ) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.parsed == answer.choices[0].message.parsed, final


def responses() -> None:
    add = {"type": "function", "name": "add", "parameters": schema, "strict": True}
    plain = client.responses.create(model=model, temperature=0, input=count(2, 9))
    assert numbers(plain.output_text) == list(range(2, 10)) and plain.status == "completed", plain
    with client.responses.stream(model=model, temperature=0, input=count(2, 9)) as stream:
        assert stream.get_final_response().output_text == plain.output_text
    asked = {"model": model, "temperature": 0, "max_output_tokens": 100, "tools": [add], "tool_choice": "required"}
    calls = [i for i in client.responses.create(input=[question], **asked).output if i.type == "function_call"]
    assert calls and calls[0].name == "add" and sorted(json.loads(calls[0].arguments)) == ["a", "b"], calls
    with client.responses.stream(input=[question], **asked) as stream:
        streamed = [i for i in stream.get_final_response().output if i.type == "function_call"]
    assert [c.arguments for c in streamed] == [c.arguments for c in calls], streamed
    output = {"type": "function_call_output", "call_id": calls[0].call_id, "output": "68"}
    after = client.responses.create(model=model, temperature=0, max_output_tokens=20, input=[question, calls[0], output])
    assert after.output[0].type == "message", after
    parsed = client.responses.parse(model=model, temperature=0, max_output_tokens=200, input="Who is it?", text_format=Person)
    assert isinstance(parsed.output_parsed, Person), parsed


def embeddings() -> None:
    for form in ("float", "base64"):
        rows = client.embeddings.create(model=os.environ["EMBEDDER"], input=["one", "two three", "one"], encoding_format=form).data
        assert [r.index for r in rows] == [0, 1, 2], rows
        assert rows[0].embedding == rows[2].embedding != rows[1].embedding, rows


def errors() -> None:
    try:
        client.chat.completions.create(model="no-such-model", messages=[{"role": "user", "content": "x"}])
        raise AssertionError("an unknown model was accepted")
    except openai.NotFoundError as e:
        assert e.body["code"] == "model_not_found" and "no-such-model" in e.body["message"], e.body
    for bad in ({"temperature": 9}, {"max_tokens": 0}, {"n": -1}, {"top_p": 7}):
        try:
            client.chat.completions.create(model=model, messages=[{"role": "user", "content": "x"}], **bad)
            raise AssertionError(f"{bad} was accepted")
        except openai.BadRequestError as e:
            assert e.body["message"], (bad, e.body)
    try:
        client.chat.completions.create(model=model, messages=[{"role": "user", "content": "word " * 20000}])
        raise AssertionError("a prompt beyond the context was accepted")
    except openai.BadRequestError as e:
        assert "maximum context length" in e.body["message"], e.body


if __name__ == "__main__":
    for step in (chat, stream, stream_without_usage, completion, seeds, stop_string, several, tools, structured, responses, embeddings, models, errors):
        step()
        print("passed:", step.__name__)
    print("ok")
