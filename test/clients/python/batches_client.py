"""Runs a batch through a door with openai-python, while its workers take their turns.

    BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo python batches_client.py

Ends with "ok" and status 0, or with the assertion that did not hold.
"""

import json
import os
import time

import openai

client = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key="mine", max_retries=0, timeout=300)
model = os.environ["MODEL"]
LINES = 48


def line(i: int) -> str:
    body = {"model": model, "temperature": 0, "messages": [{"role": "user", "content": f"Count from {i} to {i + 8} by 1."}]}
    return json.dumps({"custom_id": f"q{i}", "method": "POST", "url": "/v1/chat/completions", "body": body})


def run() -> None:
    content = "\n".join(line(i) for i in range(1, LINES)) + "\n" + line(LINES).replace(model, "no-such-model")
    file = client.files.create(file=("in.jsonl", content.encode()), purpose="batch")
    assert file.id.startswith("file-") and file.bytes == len(content) and file.purpose == "batch", file
    assert [f.id for f in client.files.list()] == [file.id]
    batch = client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"of": "a test"}
    )
    assert batch.object == "batch" and batch.status == "validating", batch
    until = time.monotonic() + 240
    while batch.status not in ("completed", "failed", "expired", "cancelled"):
        assert time.monotonic() < until, batch
        time.sleep(0.5)
        batch = client.batches.retrieve(batch.id)
    counts = batch.request_counts
    assert (batch.status, counts.total, counts.completed, counts.failed) == ("completed", LINES, LINES - 1, 1), batch
    assert batch.metadata == {"of": "a test"} and [b.id for b in client.batches.list()] == [batch.id], batch
    answers = [json.loads(text) for text in client.files.content(batch.output_file_id).text.splitlines()]
    assert sorted(int(a["custom_id"][1:]) for a in answers) == list(range(1, LINES)), answers
    for a in answers:
        i, choice = int(a["custom_id"][1:]), a["response"]["body"]["choices"][0]
        text = choice["message"]["content"].replace(",", " ")
        assert [int(w) for w in text.split()] == list(range(i, i + 9)), (i, text)
        assert a["error"] is None and a["response"]["status_code"] == 200, a
    (bad,) = [json.loads(text) for text in client.files.content(batch.error_file_id).text.splitlines()]
    assert bad["custom_id"] == f"q{LINES}" and bad["response"]["status_code"] == 404, bad
    assert client.files.delete(file.id).deleted


def cancel() -> None:
    file = client.files.create(file=("in.jsonl", "\n".join(line(i) for i in range(1, 2000)).encode()), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    assert client.batches.cancel(batch.id).status == "cancelling"
    until = time.monotonic() + 120
    while client.batches.retrieve(batch.id).status != "cancelled":
        assert time.monotonic() < until, batch
        time.sleep(0.5)


def errors() -> None:
    other = client.with_options(api_key="another")
    mine = client.batches.list().data[0]
    for call in (lambda: other.batches.retrieve(mine.id), lambda: other.files.content(mine.input_file_id), lambda: client.files.retrieve("file-none")):
        try:
            call()
            raise AssertionError("somebody else's batch or file was shown")
        except openai.NotFoundError as e:
            assert e.body["code"] == "not_found", e.body
    try:
        client.batches.create(input_file_id="file-none", endpoint="/v1/chat/completions", completion_window="24h")
        raise AssertionError("a batch without a file was accepted")
    except openai.BadRequestError as e:
        assert "input_file_id" in e.body["message"], e.body


if __name__ == "__main__":
    for step in (run, cancel, errors):
        step()
        print("passed:", step.__name__)
    print("ok")
