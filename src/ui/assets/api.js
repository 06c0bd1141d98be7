// Asks the server, and says in words what it refuses.

/** What the server said no to. */
export class Problem extends Error {
  constructor(status, error, help) {
    super(error);
    this.status = status;
    this.help = help;
  }

  /** In words, with what can be done about it. */
  get text() {
    return this.help ? `${this.message}. ${this.help}` : this.message;
  }
}

const session = { me: null, ended: () => {} };

/** Who looks on; null where nobody is logged in. */
export const me = () => session.me;

/** Whether whoever looks on may do something. */
export const may = (what) => session.me?.can?.includes(what) ?? false;

/** Why they may not, for a button; empty where they may. */
export const whyNot = (what) => (may(what) ? '' : `the role ${session.me?.role ?? 'nobody'} may not do this`);

/** Says what to do when the session has ended. */
export function whenEnded(action) {
  session.ended = action;
}

async function ask(method, path, body, signal) {
  const headers = { Accept: 'application/json' };
  if (method !== 'GET') {
    headers['Content-Type'] = 'application/json';
    if (session.me?.csrf) headers['X-Muster-CSRF'] = session.me.csrf;
  }
  let response;
  try {
    response = await fetch(path, {
      method, headers, signal, credentials: 'same-origin', body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, 'The dashboard cannot be reached', 'It ends with the terminal it was started in: `muster ui` starts it again');
  }
  const text = await response.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    if (response.ok) throw new Problem(response.status, 'The answer cannot be read', '');
  }
  if (!response.ok) {
    if (response.status === 401 && path !== '/api/me' && path !== '/api/login') session.ended();
    throw new Problem(response.status, value?.error ?? `The server answered ${response.status}`, value?.help ?? '');
  }
  return value;
}

/** Reads something. */
export const get = (path, signal) => ask('GET', path, undefined, signal);

/** Has something done. */
export const post = (path, body = {}) => ask('POST', path, body);

/** Learns who looks on; false where nobody is logged in. */
export async function known() {
  try {
    session.me = await get('/api/me');
    return true;
  } catch (error) {
    if (!(error instanceof Problem && error.status === 401)) throw error;
    session.me = null;
    return false;
  }
}

/** Logs somebody in by a token. */
export async function login(token) {
  await ask('POST', '/api/login', { token });
  return known();
}

/** Ends the session. */
export async function logout() {
  try {
    await post('/api/logout');
  } finally {
    session.me = null;
    session.ended();
  }
}

/** An address of the server, its parts made safe. */
export const at = (...parts) => `/api/${parts.map((part) => encodeURIComponent(part)).join('/')}`;

/** The same with a query; what is empty is left out. */
export function query(path, values) {
  const given = Object.entries(values).filter(([, value]) => value !== '' && value !== null && value !== undefined);
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}
