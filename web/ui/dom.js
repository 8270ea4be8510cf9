// The one renderer. h() describes an element and render() makes the page so,
// touching only what differs, so that focus, selection and scroll stay. All
// text arrives in text nodes: nothing here reads markup, and the policy of
// Trusted Types that the server sends would stop it if it did.

const SVG = 'http://www.w3.org/2000/svg';
const HTML = 'http://www.w3.org/1999/xhtml';

// h describes an element: h('p.note', {title: 'why'}, 'text', [more]). Children
// that are null, undefined or booleans are left out.
export function h(name, props, ...children) {
  const [tag, ...classes] = name.split('.');
  const all = props ?? {};
  if (all.class) classes.push(all.class);
  return { tag, key: all.key, props: all, classes: classes.join(' '), children: flat(children, []) };
}

// text describes a text node.
const text = (value) => ({ tag: '', key: undefined, text: value });

function flat(children, into) {
  for (const child of children) {
    if (child === null || child === undefined || typeof child === 'boolean') continue;
    if (Array.isArray(child)) flat(child, into);
    else into.push(typeof child === 'object' ? child : text(String(child)));
  }
  return into;
}

// memo keeps a description until one of what it is made of changes; the same
// description again costs nothing to render.
export function memo(cache, key, made, make) {
  const kept = cache.get(key);
  if (kept && kept.made.every((value, i) => value === made[i])) return kept.node;
  const node = make();
  cache.set(key, { made, node });
  return node;
}

const rendered = new WeakMap();

// render makes the children of an element those that are described.
export function render(parent, ...children) {
  const next = flat(children, []);
  patchChildren(parent, rendered.get(parent) ?? [], next, namespace(parent));
  rendered.set(parent, next);
}

const namespace = (el) => (el.namespaceURI === SVG && el.localName !== 'foreignObject' ? SVG : HTML);

function create(v, space) {
  if (v.tag === '') {
    v.el = document.createTextNode(v.text);
    return v.el;
  }
  const el = document.createElementNS(v.tag === 'svg' ? SVG : space, v.tag);
  v.el = el;
  setProps(el, {}, v, undefined);
  patchChildren(el, [], v.children, namespace(el));
  v.props.ref?.(el);
  return el;
}

function patch(old, v) {
  if (old === v) return;
  v.el = old.el;
  if (v.tag === '') {
    if (old.text !== v.text) v.el.data = v.text;
    return;
  }
  patchChildren(v.el, old.children, v.children, namespace(v.el));
  setProps(v.el, old.props, v, old.classes); // after the children: a select's value is one of its options
}

function patchChildren(el, old, next, space) {
  const matched = match(old, next);
  const kept = new Set(matched);
  for (const o of old) if (!kept.has(o)) o.el.remove();
  let cursor = el.firstChild;
  next.forEach((v, i) => {
    const o = matched[i];
    if (o) patch(o, v);
    else create(v, space);
    if (v.el === cursor) cursor = cursor.nextSibling;
    else el.insertBefore(v.el, cursor);
  });
}

// match finds for each new description the old one whose element it takes over:
// the one of its key, or the next one without a key.
function match(old, next) {
  const keyed = new Map();
  const rest = [];
  for (const o of old) {
    if (o.key === undefined) rest.push(o);
    else keyed.set(o.key, o);
  }
  let at = 0;
  return next.map((v) => {
    if (v.key !== undefined) {
      const o = keyed.get(v.key);
      return o && o.tag === v.tag ? o : undefined;
    }
    while (at < rest.length && rest[at].tag !== v.tag) at++;
    return rest[at++];
  });
}

const handlers = Symbol('handlers');

function setProps(el, old, v, oldClasses) {
  const next = v.props;
  if (v.classes !== (oldClasses ?? '')) el.setAttribute('class', v.classes);
  for (const name in old) if (!(name in next)) setProp(el, name, undefined);
  for (const name in next) if (next[name] !== old[name] || name === 'value' || name === 'checked') setProp(el, name, next[name]);
}

function setProp(el, name, value) {
  if (name === 'key' || name === 'class' || name === 'ref') return;
  if (name.startsWith('on')) listen(el, name.slice(2), value);
  else if (name === 'css') for (const [k, x] of Object.entries(value ?? {})) el.style.setProperty(k, x);
  else if (name === 'value' || name === 'checked' || name === 'indeterminate') {
    if (el[name] !== (value ?? '')) el[name] = value ?? '';
  } else if (name === 'href' && value !== undefined && !/^(#|blob:)/.test(value)) throw new Error(`a link that leads outside: ${value}`);
  else if (value === undefined || value === null || value === false) el.removeAttribute(name);
  else el.setAttribute(name, value === true ? '' : value);
}

// listen keeps one listener an event, which calls whatever is described now.
function listen(el, kind, f) {
  const all = (el[handlers] ??= {});
  if (!(kind in all)) el.addEventListener(kind, (event) => all[kind]?.(event));
  all[kind] = f;
}
