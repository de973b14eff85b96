// Points in one place, and where to draw places. Names tell the place: fra-ams and fra-zrh are both at fra.

export interface Place {
  name: string;
  points: string[];
  x: number;
  y: number;
}

export interface Line {
  from: string;
  to: string;
  upstream: string;
  downstream: string;
  /** Where it passes the columns between its ends. */
  via: string[];
}

export interface Layout {
  places: Place[];
  lines: Line[];
  columns: number;
  rows: number;
}

interface Ends {
  upstream: string;
  downstream: string;
}

/** The part of a name before its first separator, if at least half of the points share theirs with others; else all of it. */
export function placesOf(points: Iterable<string>): Map<string, string> {
  const names = [...new Set(points)];
  const stem = (name: string) => /^([^-./_]+)[-./_]./.exec(name)?.[1] ?? name;
  const shared = new Map<string, number>();
  for (const name of names) shared.set(stem(name), (shared.get(stem(name)) ?? 0) + 1);
  const alike = names.filter((name) => shared.get(stem(name))! > 1).length;
  return new Map(names.map((name) => [name, 2 * alike >= names.length ? stem(name) : name]));
}

export function layout(segments: Ends[]): Layout {
  const places = placesOf(segments.flatMap(({ upstream, downstream }) => [upstream, downstream]));
  const lines = segments.map(({ upstream, downstream }) => ({
    from: places.get(upstream)!,
    to: places.get(downstream)!,
    upstream,
    downstream,
    via: [] as string[],
  }));
  const names = [...new Set(places.values())];
  const depth = depths(names, lines);
  const columns: string[][] = [];
  for (const name of names) (columns[depth.get(name)!] ??= []).push(name);
  lines.forEach((line, number) => bridge(line, number, depth, columns));
  order(columns, lines.flatMap(legs));
  const rows = Math.max(1, ...columns.map((column) => column.length));
  const placed = columns.flatMap((column, x) =>
    column.map((name, index) => ({
      name,
      points: [...places].filter(([, place]) => place === name).map(([point]) => point),
      x,
      y: ((index + 0.5) * rows) / column.length - 0.5,
    })),
  );
  return { places: placed, lines, columns: columns.length, rows };
}

/** How many lines lie before a place at most; in a network with loops, how far it is from where they start. */
function depths(names: string[], lines: Line[]): Map<string, number> {
  const depth = new Map(names.map((name) => [name, 0]));
  for (let round = 0; round < names.length; round += 1) {
    let isSettled = true;
    for (const { from, to } of lines) {
      if (from !== to && depth.get(to)! <= depth.get(from)!) {
        depth.set(to, depth.get(from)! + 1);
        isSettled = false;
      }
    }
    if (isSettled) return depth;
  }
  return distances(names, lines);
}

function distances(names: string[], lines: Line[]): Map<string, number> {
  const depth = new Map<string, number>();
  for (const start of names) {
    if (depth.has(start)) continue;
    depth.set(start, 0);
    const queue = [start];
    for (const place of queue) {
      for (const { from, to } of lines) {
        const other = from === place ? to : to === place ? from : null;
        if (other == null || depth.has(other)) continue;
        depth.set(other, depth.get(place)! + 1);
        queue.push(other);
      }
    }
  }
  return depth;
}

/** Keeps room for a line in the columns that it passes. */
function bridge(line: Line, number: number, depth: Map<string, number>, columns: string[][]): void {
  for (let column = depth.get(line.from)! + 1; column < depth.get(line.to)!; column += 1) {
    const name = `\u0000${number}.${column}`;
    line.via.push(name);
    columns[column]!.push(name);
  }
}

function legs(line: Line): { from: string; to: string }[] {
  const stops = [line.from, ...line.via, line.to];
  return stops.slice(1).map((to, at) => ({ from: stops[at]!, to }));
}

/** Sorts every column by the middle of the neighbours in the column before, so that few lines cross. */
function order(columns: string[][], lines: { from: string; to: string }[]): void {
  for (let number = 1; number < columns.length; number += 1) {
    const before = new Map(columns.slice(0, number).flatMap((column) => column.map((name, at) => [name, at / column.length] as const)));
    const middle = (name: string) => {
      const at = lines.flatMap(({ from, to }) => (to === name ? [before.get(from)] : from === name ? [before.get(to)] : []));
      const known = at.filter((place) => place != null);
      return known.length ? known.reduce((sum, place) => sum + place, 0) / known.length : 1;
    };
    columns[number]!.sort((one, other) => middle(one) - middle(other));
  }
}

/** How a place is reached: by how many segments, and the last of them. */
interface Reached {
  length: number;
  last: Ends | null;
  before: string | null;
}

/** Finds what can be reached from a place by the fewest segments. What is asked again and again is prepared once. */
export function walker(segments: Ends[], places = placesOf(segments.flatMap(({ upstream, downstream }) => [upstream, downstream]))): (from: string) => Map<string, Reached> {
  const leaving = new Map<string, Ends[]>();
  for (const segment of segments) {
    const place = places.get(segment.upstream)!;
    leaving.set(place, [...(leaving.get(place) ?? []), segment]);
  }
  return (from) => {
    const reached = new Map<string, Reached>([[from, { length: 0, last: null, before: null }]]);
    // What is added while it is walked is walked as well.
    for (const [place, { length }] of reached) {
      for (const last of leaving.get(place) ?? []) {
        const next = places.get(last.downstream)!;
        if (!reached.has(next)) reached.set(next, { length: length + 1, last, before: place });
      }
    }
    return reached;
  };
}

/** The fewest segments that lead from one place to another, in order; null if none do. */
export function chain(segments: Ends[], from: string, to: string, places?: Map<string, string>): Ends[] | null {
  const reached = walker(segments, places)(from);
  if (!reached.has(to)) return null;
  const found: Ends[] = [];
  for (let at = reached.get(to); at?.last; at = reached.get(at.before!)) found.push(at.last);
  return found.reverse();
}

/** The segments of a path. What was measured from end to end is not a part of it, unless nothing else leads there. */
export function parts(segments: Ends[], from: string, to: string): Ends[] | null {
  const places = placesOf(segments.flatMap(({ upstream, downstream }) => [upstream, downstream]));
  const isWhole = ({ upstream, downstream }: Ends) => places.get(upstream) === from && places.get(downstream) === to;
  return chain(segments.filter((of) => !isWhole(of)), from, to, places) ?? chain(segments, from, to, places);
}
