// Runs a batch through a door with openai-node, while its workers take their turns.
//
//   BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo node batches_client.mjs
//
// Ends with "ok" and status 0, or with the assertion that did not hold.

import assert from "node:assert/strict";
import OpenAI, { toFile } from "openai";

const client = new OpenAI({ baseURL: process.env.BASE_URL, apiKey: "node's", maxRetries: 0, timeout: 300_000 });
const model = process.env.MODEL;
const lines = 24;

const line = (i) =>
  JSON.stringify({
    custom_id: `q${i}`,
    method: "POST",
    url: "/v1/completions",
    body: { model, prompt: `${i}`, max_tokens: 4, temperature: 0 },
  });

const content = Array.from({ length: lines }, (_, i) => line(i)).join("\n");
const file = await client.files.create({ file: await toFile(Buffer.from(content), "in.jsonl"), purpose: "batch" });
assert.equal(file.bytes, Buffer.byteLength(content));
let batch = await client.batches.create({ input_file_id: file.id, endpoint: "/v1/completions", completion_window: "24h" });
const until = Date.now() + 240_000;
while (!["completed", "failed", "expired", "cancelled"].includes(batch.status)) {
  assert.ok(Date.now() < until, JSON.stringify(batch));
  await new Promise((later) => setTimeout(later, 500));
  batch = await client.batches.retrieve(batch.id);
}
assert.equal(batch.status, "completed", JSON.stringify(batch));
assert.deepEqual(batch.request_counts, { total: lines, completed: lines, failed: 0 });
const answers = (await (await client.files.content(batch.output_file_id)).text()).trim().split("\n").map((l) => JSON.parse(l));
assert.deepEqual(answers.map((a) => Number(a.custom_id.slice(1))).sort((a, b) => a - b), Array.from({ length: lines }, (_, i) => i));
for (const a of answers) assert.ok(a.response.body.usage.completion_tokens > 0, JSON.stringify(a));
const listed = [];
for await (const b of client.batches.list({ limit: 1 })) listed.push(b.id);
assert.deepEqual(listed, [batch.id]);
console.log("ok");
