// Everything has an address: #/workers/chat/2?since=1h.

export function parse(hash) {
  const [path, query] = hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').map((p) => {
    try {
      return decodeURIComponent(p);
    } catch {
      return p; // typed by hand
    }
  });
  return { page: parts[0] || 'now', rest: parts.slice(1).filter(Boolean), query: new URLSearchParams(query ?? '') };
}

// link is the address of a page; a worker's id counts as pool and name.
export const link = (page, ...rest) => `#/${[page, ...rest].map(encodeURIComponent).join('/')}`;
export const workerLink = (id) => link('workers', ...split(id));

// split parts a worker's id into pool and name; the name may hold a slash.
export function split(id) {
  const cut = id.indexOf('/');
  return cut < 0 ? [id] : [id.slice(0, cut), id.slice(cut + 1)];
}

// setQuery writes filters into the address without a step of the history.
export function setQuery(changes) {
  const { page, rest, query } = parse(location.hash);
  for (const [k, v] of Object.entries(changes)) {
    if (v === '' || v === null || v === undefined) query.delete(k);
    else query.set(k, v);
  }
  const words = query.toString();
  history.replaceState(null, '', link(page, ...rest) + (words ? `?${words}` : ''));
}
