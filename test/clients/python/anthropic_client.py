"""Drives a door with Anthropic's client, as its users would.

    BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo python anthropic_client.py

Ends with "ok" and status 0, or with the assertion that did not hold.
"""

import os

import anthropic

client = anthropic.Anthropic(base_url=os.environ["BASE_URL"].removesuffix("/v1"), api_key="none", max_retries=0, timeout=300)
model = os.environ["MODEL"]
greedy = {"temperature": 0}
number = {"type": "integer", "minimum": 0, "maximum": 99}
add = {
    "name": "add",
    "description": "Adds two numbers.",
    "input_schema": {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"], "additionalProperties": False},
}
question = {"role": "user", "content": "What is 23 + 45?"}


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.replace(",", " ").split()]


def messages() -> None:
    asked = {"model": model, "extra_body": greedy, "max_tokens": 100, "messages": [{"role": "user", "content": "Count from 2 to 9 by 1."}]}
    answer = client.messages.create(**asked)
    assert answer.stop_reason == "end_turn" and numbers(answer.content[0].text) == list(range(2, 10)), answer
    with client.messages.stream(**asked) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == answer.content[0].text and final.usage.output_tokens == answer.usage.output_tokens, final
    counted = client.messages.count_tokens(model=model, messages=asked["messages"])
    assert counted.input_tokens == answer.usage.input_tokens, counted


def tools() -> None:
    asked = {"model": model, "extra_body": greedy, "max_tokens": 100, "messages": [question], "tools": [add], "tool_choice": {"type": "any"}}
    answer = client.messages.create(**asked)
    call = answer.content[-1]
    assert answer.stop_reason == "tool_use" and call.type == "tool_use" and sorted(call.input) == ["a", "b"], answer
    with client.messages.stream(**asked) as stream:
        final = stream.get_final_message()
    assert final.content[-1].input == call.input and final.stop_reason == "tool_use", final
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "68"}
    turns = [question, {"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    after = client.messages.create(model=model, extra_body=greedy, max_tokens=20, messages=turns, tools=[add])
    assert after.content[0].type == "text", after


def thinking() -> None:
    """Thoughts come as blocks of their own, whole and streamed, and go back with the next turn."""
    ask = {"role": "user", "content": "Count from 2 to 9 by 1."}
    asked = {
        "model": os.environ["THINKER"],
        "extra_body": greedy,
        "max_tokens": 2000,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }
    answer = client.messages.create(messages=[ask], **asked)
    thought = answer.content[0]
    assert thought.type == "thinking" and numbers(thought.thinking) == list(range(2, 10)), answer
    with client.messages.stream(messages=[ask], **asked) as stream:
        pieces = [e.thinking for e in stream if e.type == "thinking"]
        final = stream.get_final_message()
    assert "".join(pieces) == final.content[0].thinking == thought.thinking, (pieces, final)
    turns = [ask, {"role": "assistant", "content": [*answer.content, {"type": "text", "text": "Done."}]}, ask]
    after = client.messages.create(messages=turns, **asked)
    assert after.usage.input_tokens > answer.usage.input_tokens, (after, answer)


def errors() -> None:
    try:
        client.messages.create(model=model, max_tokens=4, extra_body={"temperature": 9}, messages=[question])
        raise AssertionError("a temperature of 9 was accepted")
    except anthropic.BadRequestError as e:
        assert "temperature" in str(e), e


if __name__ == "__main__":
    for step in (messages, tools, thinking, errors):
        step()
        print("passed:", step.__name__)
    print("ok")
