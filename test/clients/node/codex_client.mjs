// Has Codex work through a door, in a folder of its own.
//
//   BASE_URL=http://127.0.0.1:8000/v1 MODEL=roundhouse-demo node codex_client.mjs
//
// Ends with "ok" and status 0, or with the assertion that did not hold.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const program = join(dirname(fileURLToPath(import.meta.url)), "node_modules", ".bin", "codex");
const home = await mkdtemp(join(tmpdir(), "codex-"));

const settings = {
  model: process.env.MODEL,
  model_provider: "door",
  "model_providers.door.name": "door",
  "model_providers.door.base_url": process.env.BASE_URL,
  "model_providers.door.wire_api": "responses",
  "model_providers.door.env_key": "DOOR_KEY",
  "model_providers.door.request_max_retries": 0,
  "model_providers.door.stream_max_retries": 0,
  model_context_window: 2048,
  model_instructions_file: join(home, "instructions.md"),
};

// exec runs `codex exec` and returns what its events say.
async function exec(prompt) {
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${JSON.stringify(value)}`]);
  const child = spawn(program, ["exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only", "--output-schema", join(home, "schema.json"), "--cd", home, ...flags, prompt], {
    env: { ...process.env, CODEX_HOME: home, DOOR_KEY: "none" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (piece) => (out += piece));
  child.stderr.on("data", (piece) => (err += piece));
  const status = await new Promise((ended) => child.on("close", ended));
  assert.equal(status, 0, `${out}\n${err}`);
  return out.trim().split("\n").map((line) => JSON.parse(line));
}

// The demonstration model knows nothing of so long a prompt, so the schema has the answer:
// it ends with the right one if tools, format and stream all pass.
const schema = { type: "object", properties: { sum: { type: "integer", enum: [68] } }, required: ["sum"], additionalProperties: false };
await writeFile(join(home, "schema.json"), JSON.stringify(schema));
await writeFile(join(home, "instructions.md"), "Be brief.");
try {
  const events = await exec("What is 23 + 45?");
  const said = events.filter((e) => e.type === "item.completed" && e.item.type === "agent_message").map((e) => e.item.text);
  assert.deepEqual(JSON.parse(said.at(-1)), { sum: 68 }, JSON.stringify(events));
  assert.ok(events.at(-1).type === "turn.completed" && events.at(-1).usage.output_tokens > 0, JSON.stringify(events.at(-1)));
} finally {
  await rm(home, { recursive: true, force: true });
}
console.log("ok");
