// Tools of a chat: what may be called, what was called, and what a person says that
// it returned.
import { h } from '../dom.js';
import { clean } from '../format.js';

const EXAMPLE = '[{"type":"function","function":{"name":"weather","parameters":{"type":"object", …}}}]';

export const placeholder = EXAMPLE;

// read takes the list of tools as it was written.
export function read(text) {
  const list = JSON.parse(text);
  if (!Array.isArray(list)) throw new SyntaxError(`a list is wanted, such as ${EXAMPLE}`);
  return list;
}

// turn is what a conversation has of a turn: what was asked, what was answered and
// called, and what the calls returned.
export function turn(t) {
  const calls = made(t.run);
  const answer = { role: 'assistant', content: t.run.text, ...(calls.length ? { tool_calls: calls.map(({ returned, ...c }) => c) } : {}) };
  const returned = calls.map((c) => ({ role: 'tool', tool_call_id: c.id, content: c.returned ?? '' }));
  return [...(t.asked ? [t.asked] : []), answer, ...returned];
}

export const made = (run) => (run.calls ?? []).filter(Boolean);

// shown are the calls of an answer; of the last one it is asked what they returned.
export function shown(run, asks) {
  const calls = made(run);
  if (calls.length === 0) return null;
  return h(
    'ul.calls',
    { 'aria-label': 'Calls' },
    calls.map((c, i) =>
      h(
        'li',
        { key: i },
        h('p', null, 'calls ', h('b', null, clean(c.function.name))),
        h('pre.line', { tabindex: 0 }, clean(pretty(c.function.arguments))),
        asks && run.phase === 'ended' ? returned(c) : c.returned ? h('p.small', null, 'returned ', clean(c.returned)) : null,
      ),
    ),
  );
}

const returned = (call) =>
  h(
    'label.stacked',
    null,
    h('span', null, `What ${clean(call.function.name)} returned`),
    h('input', {
      value: call.returned ?? '',
      oninput: (e) => {
        call.returned = e.target.value;
      },
    }),
  );

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 1);
  } catch {
    return text; // it still comes, or is no JSON
  }
}
