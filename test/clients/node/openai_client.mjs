// Drives a door with openai-node, as its users would.
//
//   BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo EMBEDDER=embedder node openai_client.mjs
//
// Ends with "ok" and status 0, or with the assertion that did not hold.

import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: "none", maxRetries: 0, timeout: 300_000 });
const model = process.env.MODEL;

const ask = (a, b) => [{ role: "user", content: `Count from ${a} to ${b} by 1.` }];
const range = (a, b) => Array.from({ length: b - a + 1 }, (_, i) => a + i);
const numbers = (text) => text.replaceAll(",", " ").trim().split(/\s+/).map(Number);

async function chat() {
  const answer = await client.chat.completions.create({ model, temperature: 0, messages: ask(3, 14) });
  assert.deepEqual(numbers(answer.choices[0].message.content), range(3, 14));
  assert.equal(answer.choices[0].finish_reason, "stop");
  assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
}

async function stream() {
  const events = await client.chat.completions.create({
    model,
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
    messages: ask(1, 40),
  });
  let text = "";
  let usage = null;
  const ids = new Set();
  for await (const event of events) {
    ids.add(event.id);
    text += event.choices[0]?.delta?.content ?? "";
    usage = event.usage ?? usage;
    assert.equal(event.choices[0]?.token_ids ?? null, null, "nothing that the client did not ask for");
  }
  assert.deepEqual(numbers(text), range(1, 40));
  assert.equal(ids.size, 1);
  assert.ok(usage.completion_tokens > 0);
}

// A client that leaves a stream gets no more of it, and the next one is whole.
async function leave() {
  const controller = new AbortController();
  const events = await client.chat.completions.create(
    { model, temperature: 0, stream: true, messages: ask(1, 200) },
    { signal: controller.signal },
  );
  for await (const _ of events) {
    controller.abort();
    break;
  }
  await chat();
}

async function completion() {
  const answer = await client.completions.create({ model, prompt: "1, 2, 3,", max_tokens: 4, temperature: 0 });
  assert.equal(answer.object, "text_completion");
  assert.ok(answer.usage.completion_tokens <= 4);
}

const number = { type: "integer", minimum: 0, maximum: 99 };
const schema = { type: "object", properties: { a: number, b: number }, required: ["a", "b"], additionalProperties: false };

async function tools() {
  const asked = {
    model,
    temperature: 0,
    max_tokens: 100,
    messages: [{ role: "user", content: "What is 23 + 45?" }],
    tools: [{ type: "function", function: { name: "add", parameters: schema } }],
    tool_choice: { type: "function", function: { name: "add" } },
  };
  const whole = await client.chat.completions.create(asked);
  const call = whole.choices[0].message.tool_calls[0];
  assert.deepEqual(Object.keys(JSON.parse(call.function.arguments)).sort(), ["a", "b"]);
  const streamed = await client.chat.completions.stream(asked).finalChatCompletion();
  assert.equal(streamed.choices[0].message.tool_calls[0].function.arguments, call.function.arguments);
}

async function structured() {
  const answer = await client.chat.completions.create({
    model,
    temperature: 0,
    max_tokens: 100,
    messages: [{ role: "user", content: "Which numbers?" }],
    response_format: { type: "json_schema", json_schema: { name: "pair", strict: true, schema } },
  });
  assert.deepEqual(Object.keys(JSON.parse(answer.choices[0].message.content)).sort(), ["a", "b"]);
}

// parse has the client itself read the answer by zod's schema.
async function parse() {
  const Pair = z.object({ a: z.number().int().min(0).max(99), b: z.number().int().min(0).max(99) });
  const asked = { model, temperature: 0, messages: [{ role: "user", content: "Which numbers?" }] };
  const chat = await client.chat.completions.parse({ ...asked, response_format: zodResponseFormat(Pair, "pair") });
  assert.deepEqual(Object.keys(chat.choices[0].message.parsed).sort(), ["a", "b"]);
  const response = await client.responses.parse({ model, temperature: 0, input: "Which numbers?", text: { format: zodTextFormat(Pair, "pair") } });
  Pair.parse(response.output_parsed);
}

async function responses() {
  const answer = await client.responses.create({ model, temperature: 0, input: "Count from 2 to 9 by 1." });
  assert.deepEqual(numbers(answer.output_text), range(2, 9));
  let text = "";
  for await (const event of await client.responses.create({ model, temperature: 0, stream: true, input: "Count from 2 to 9 by 1." })) {
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  assert.equal(text, answer.output_text);
}

async function embeddings() {
  const { data } = await client.embeddings.create({ model: process.env.EMBEDDER, input: ["one", "two three", "one"] });
  assert.deepEqual(data[0].embedding, data[2].embedding);
  assert.notDeepEqual(data[0].embedding, data[1].embedding);
}

async function models() {
  const ids = [];
  for await (const m of client.models.list()) ids.push(m.id);
  assert.ok(ids.includes(model), `${ids}`);
}

async function errors() {
  await assert.rejects(
    client.chat.completions.create({ model: "no-such-model", messages: ask(1, 2) }),
    (e) => e instanceof OpenAI.NotFoundError && e.message.includes("no-such-model"),
  );
  await assert.rejects(
    client.chat.completions.create({ model, messages: ask(1, 2), temperature: 9 }),
    (e) => e instanceof OpenAI.BadRequestError,
  );
}

for (const step of [chat, stream, leave, completion, tools, structured, parse, responses, embeddings, models, errors]) {
  await step();
  console.log("passed:", step.name);
}
console.log("ok");
