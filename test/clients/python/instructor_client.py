"""Drives a door with instructor, which has pydantic models filled in by each of an API's ways.

    BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo python instructor_client.py

Ends with "ok" and status 0, or with the assertion that did not hold.
"""

import os
from typing import Literal

import instructor
import openai
from pydantic import BaseModel, Field

model = os.environ["MODEL"]
plain = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key="none", max_retries=0, timeout=300)
asked = {"model": model, "temperature": 0, "max_tokens": 200, "max_retries": 0, "messages": [{"role": "user", "content": "Who is it?"}]}


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=150)
    sign: Literal["cat", "dog"]


def whole() -> None:
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA, instructor.Mode.TOOLS_STRICT):
        person, answer = instructor.from_openai(plain, mode=mode).chat.completions.create_with_completion(response_model=Person, **asked)
        assert isinstance(person, Person), (mode, person)
        assert answer.usage.completion_tokens > 0, (mode, answer)


def partial() -> None:
    client = instructor.from_openai(plain, mode=instructor.Mode.JSON_SCHEMA)
    last = None
    for last in client.chat.completions.create_partial(response_model=Person, **asked):
        pass
    final = client.chat.completions.create(response_model=Person, **asked)
    assert last.model_dump() == final.model_dump(), (last, final)


def text() -> None:
    answer = plain.chat.completions.create(model=model, temperature=0, messages=[{"role": "user", "content": "Count from 3 to 14 by 1."}])
    assert [int(w) for w in answer.choices[0].message.content.replace(",", " ").split()] == list(range(3, 15)), answer


if __name__ == "__main__":
    for step in (whole, partial, text):
        step()
        print("passed:", step.__name__)
    print("ok")
