// Drives a door with the AI SDK, as its users would.
//
//   BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo EMBEDDER=embedder node aisdk_client.mjs
//
// Ends with "ok" and status 0, or with the assertion that did not hold.

import assert from "node:assert/strict";
import { embed, embedMany, generateText, Output, stepCountIs, streamText, tool } from "ai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { z } from "zod";

const provider = createOpenAICompatible({
  name: "roundhouse",
  baseURL: process.env.BASE_URL,
  apiKey: "none",
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const model = provider(process.env.MODEL);
const common = { model, temperature: 0, maxOutputTokens: 200, maxRetries: 0 };

const range = (a, b) => Array.from({ length: b - a + 1 }, (_, i) => a + i);
const numbers = (text) => text.replaceAll(",", " ").trim().split(/\s+/).map(Number);

const person = z.object({
  name: z.string().max(12),
  age: z.number().int().min(0).max(150),
  sign: z.enum(["cat", "dog"]),
});

const add = tool({
  description: "Adds two numbers.",
  inputSchema: z.object({ a: z.number().int().min(0).max(99), b: z.number().int().min(0).max(99) }),
  execute: async ({ a, b }) => a + b,
});

async function chat() {
  const answer = await generateText({ ...common, prompt: "Count from 3 to 14 by 1." });
  assert.deepEqual(numbers(answer.text), range(3, 14));
  assert.equal(answer.finishReason, "stop");
  assert.equal(answer.usage.totalTokens, answer.usage.inputTokens + answer.usage.outputTokens);
}

async function stream() {
  const answer = streamText({ ...common, prompt: "Count from 1 to 20 by 1." });
  let text = "";
  for await (const piece of answer.textStream) text += piece;
  assert.deepEqual(numbers(text), range(1, 20));
  assert.equal(await answer.finishReason, "stop");
  assert.ok((await answer.usage).outputTokens > 0);
}

async function structured() {
  const whole = await generateText({ ...common, prompt: "Who is it?", output: Output.object({ schema: person }) });
  person.parse(whole.output);
  const answer = streamText({ ...common, prompt: "Who is it?", output: Output.object({ schema: person }) });
  let last;
  for await (const part of answer.partialOutputStream) last = part;
  assert.deepEqual(last, whole.output);
}

async function tools() {
  const once = await generateText({ ...common, prompt: "What is 23 + 45?", tools: { add }, toolChoice: "required" });
  assert.equal(once.finishReason, "tool-calls");
  assert.ok(once.toolCalls.length > 0 && once.toolCalls.every((c) => c.toolName === "add"));
  assert.equal(once.toolResults[0].output, once.toolCalls[0].input.a + once.toolCalls[0].input.b);
  const named = streamText({ ...common, prompt: "What is 23 + 45?", tools: { add }, toolChoice: { type: "tool", toolName: "add" } });
  const kinds = new Set();
  for await (const part of named.fullStream) kinds.add(part.type);
  assert.ok(kinds.has("tool-call") && kinds.has("tool-result"), `${[...kinds]}`);
}

// The second turn carries the call and its result back to the model.
async function turns() {
  let step = 0;
  const answer = await generateText({
    ...common,
    prompt: "What is 23 + 45?",
    tools: { add },
    stopWhen: stepCountIs(2),
    prepareStep: () => ({ toolChoice: step++ === 0 ? "required" : "auto" }),
  });
  assert.equal(answer.steps.length, 2);
  assert.equal(typeof answer.text, "string");
}

async function embeddings() {
  const embedder = provider.textEmbeddingModel?.(process.env.EMBEDDER) ?? provider.embeddingModel(process.env.EMBEDDER);
  const { embeddings: rows } = await embedMany({ model: embedder, values: ["one", "two three", "one"], maxRetries: 0 });
  assert.deepEqual(rows[0], rows[2]);
  assert.notDeepEqual(rows[0], rows[1]);
  const { embedding } = await embed({ model: embedder, value: "one", maxRetries: 0 });
  assert.deepEqual(embedding, rows[0]);
}

for (const step of [chat, stream, structured, tools, turns, embeddings]) {
  await step();
  console.log("passed:", step.name);
}
console.log("ok");
