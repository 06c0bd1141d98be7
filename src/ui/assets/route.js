// Addresses of pages: `#/runs/ID/plan?task=1`. Pure.

/** The page that an address names, with what it says of it. */
export function parse(hash) {
  const [path, search = ''] = String(hash).replace(/^#\/?/, '').split('?', 2);
  const parts = path.split('/').filter(Boolean).map(part);
  const query = Object.fromEntries(new URLSearchParams(search));
  const [page = 'fleet', id, tab] = parts;
  if (page === 'runs' && id && tab === 'compare') return { page: 'compare', id, other: parts[3] ?? '', query };
  if (page === 'runs' && id) return { page: 'run', id, tab: tab ?? 'plan', query };
  return { page, query };
}

function part(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a page. */
export function link(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== '' && value !== null && value !== undefined);
  const search = given.length ? `?${new URLSearchParams(given)}` : '';
  return `#/${parts.map((one) => encodeURIComponent(one)).join('/')}${search}`;
}

/** Goes there. */
export const go = (parts, query) => {
  location.hash = link(parts, query);
};

/** The same in place of the address that is open. */
export function instead(parts, query) {
  history.replaceState(null, '', link(parts, query));
}
