// The address holds all that a page shows: who gets it sees the same.

export type Page = 'overview' | 'segment' | 'path' | 'flows' | 'round-trips' | 'points' | 'alerts' | 'help';

const PAGES: Page[] = ['overview', 'segment', 'path', 'flows', 'round-trips', 'points', 'alerts', 'help'];

interface Route {
  page: Page;
  values: Record<string, string>;
}

function read(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const page = PAGES.find((known) => known === path) ?? 'overview';
  return { page, values: Object.fromEntries(new URLSearchParams(query)) };
}

export const route: Route = $state(read());

addEventListener('hashchange', () => Object.assign(route, read()));

export type Change = Record<string, string | number | null | undefined>;

/** What every page understands: the time. */
const SHARED = ['range', 'start', 'end'];

/** The address of a page, with the time that is looked at now. */
export function link(page: Page, change: Change = {}): string {
  const shared = Object.fromEntries(SHARED.map((name) => [name, route.values[name]]));
  return written(page, { ...shared, ...change });
}

/** Changes values of this page. `replace` leaves no step in the browser's history. */
export function set(change: Change, how: 'push' | 'replace' = 'push'): void {
  const target = written(route.page, { ...route.values, ...change });
  if (how === 'push') location.hash = target;
  else {
    history.replaceState(null, '', target);
    Object.assign(route, read());
  }
}

function written(page: Page, values: Change): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value != null && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `#/${page}?${text}` : `#/${page}`;
}
