// What can be tried with a model: the tasks of the pools that serve it say.
import { store, workersOf } from '../store.js';

export const kinds = {
  chat: 'Chat',
  compare: 'Side by side',
  many: 'Many at once',
  image: 'Pictures',
  speech: 'Speech',
  transcribe: 'Transcription',
  embeddings: 'Embeddings',
  rerank: 'Rerank',
};

const chats = ['chat', 'compare', 'many'];
const offered = {
  generate: chats,
  embed: ['embeddings'],
  score: ['rerank'],
  transcribe: ['transcribe'],
  speech: ['speech'],
  image: ['image'],
  any: Object.keys(kinds),
};
// What the door sends to a pool without a task: its workers take it or refuse it.
const unsaid = [...chats, 'transcribe', 'embeddings', 'rerank'];

export const models = () => [...new Set(workersOf().flatMap((w) => w.models))].sort();

// of are the kinds of a model, in the order of the page.
export function of(model) {
  const pools = new Set(
    workersOf()
      .filter((w) => w.models.includes(model))
      .map((w) => w.pool),
  );
  const some = new Set(store.state.pools.filter((p) => pools.has(p.name)).flatMap((p) => offered[p.task] ?? unsaid));
  return Object.keys(kinds).filter((k) => some.has(k));
}

// takes are the kinds of files that some of these workers take in a prompt, as they
// say themselves; those that say nothing may take any.
export const takes = (workers) => ['image', 'audio'].filter((kind) => workers.some((w) => !w.modalities || w.modalities.includes(kind)));

// serving are the workers that a kind of request for a model can go to.
export function serving(model, kind) {
  const tasks = new Map(store.state.pools.map((p) => [p.name, p.task]));
  return workersOf().filter((w) => w.models.includes(model) && (offered[tasks.get(w.pool)] ?? unsaid).includes(kind));
}
