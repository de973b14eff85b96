// The segments between two places, and who added what.

import { ask, seconds, type Estimate, type Segments, type Totals } from './api';
import { best, cellKey, cellsOf, known, type Known } from './estimates';
import { chain, layout, walker } from './places';
import { stored, totalStep, type Span } from './time.svelte';

export interface Part {
  upstream: string;
  downstream: string;
  mean: Known;
  p99: Known;
  loss: Known;
  deviation: number | null;
  /** Where its bar begins: the sum of the means before it. */
  fromNs: number;
}

export interface PathData {
  places: string[];
  classes: string[];
  from: string | null;
  to: string | null;
  class: string;
  span: Span;
  parts: Part[] | null;
  /** What all parts come to, if all of them are known. */
  sum: { value: number; low: number; high: number } | null;
  /** What was measured from end to end, if that is a segment of its own. */
  whole: Known | null;
  /** Places where packets pass from one point to another without being measured between. */
  unmeasured: string[];
}

export async function loadPath(wanted: { from?: string; to?: string; class?: string }, chosen: () => Span, signal: AbortSignal): Promise<PathData> {
  const { segments, range } = await ask<Segments>('segments', {}, signal);
  stored.startNs = range.start_ns;
  const span = chosen();
  const classes = [...new Set(segments.map((of) => of.class))];
  const ofClass = classes.find((of) => of === wanted.class) ?? classes[0] ?? '';
  const ends = [...new Map(segments.filter((of) => of.class === ofClass).map((of) => [cellKey(of), of])).values()];
  const { places, lines } = layout(ends);
  const names = places.filter((place) => place.points.length).map((place) => place.name);
  const [first, last] = farthest(names, ends);
  const from = names.find((name) => name === wanted.from) ?? first;
  const to = names.find((name) => name === wanted.to) ?? last;
  const found = from != null && to != null && from !== to ? chain(ends, from, to) : null;
  const base = { places: names, classes, from, to, class: ofClass, span, sum: null, whole: null, unmeasured: [] };
  if (!found?.length) return { ...base, parts: null };
  const { totals } = await ask<Totals>('totals', { class: ofClass, start: seconds(span.startNs), end: seconds(span.endNs), step: totalStep(span) }, signal);
  const cells = cellsOf(totals);
  const rowsOf = (upstream: string, downstream: string) => cells.get(cellKey({ upstream, downstream, class: ofClass }))?.rows ?? [];
  const parts = partsOf(found, rowsOf);
  const whole = found.length > 1 ? rowsOf(found[0]!.upstream, found.at(-1)!.downstream) : [];
  const unmeasured = found.slice(1).flatMap((part, at) => (part.upstream === found[at]!.downstream ? [] : [lines.find((line) => line.upstream === part.upstream)!.from]));
  return { ...base, parts, sum: sumOf(parts), whole: whole.length ? known(whole, 'mean') : null, unmeasured };
}

function partsOf(found: { upstream: string; downstream: string }[], rowsOf: (upstream: string, downstream: string) => Estimate[]): Part[] {
  let fromNs = 0;
  return found.map(({ upstream, downstream }) => {
    const rows = rowsOf(upstream, downstream);
    const mean = known(rows, 'mean');
    const part = { upstream, downstream, mean, p99: known(rows, 'p99'), loss: known(rows, 'loss'), deviation: best(rows, 'mean')?.stddev_ns ?? null, fromNs };
    fromNs += mean.value ?? 0;
    return part;
  });
}

/** Ends are added to ends: that holds whether or not the errors of segments have to do with each other. */
function sumOf(parts: Part[]): PathData['sum'] {
  if (parts.some(({ mean }) => mean.value == null || mean.low == null || mean.high == null)) return null;
  const add = (pick: (of: Known) => number) => parts.reduce((sum, part) => sum + pick(part.mean), 0);
  return { value: add((of) => of.value!), low: add((of) => of.low!), high: add((of) => of.high!) };
}

/** The two places with most segments between them. */
function farthest(names: string[], ends: { upstream: string; downstream: string }[]): [string | null, string | null] {
  let longest: [string | null, string | null, number] = [names[0] ?? null, names[1] ?? null, 0];
  // In a large network not from everywhere: the reader chooses.
  const STARTS_MAX = 40;
  const walk = walker(ends);
  for (const from of names.slice(0, STARTS_MAX)) {
    for (const [to, { length }] of walk(from)) {
      if (length > longest[2]) longest = [from, to, length];
    }
  }
  return [longest[0], longest[1]];
}
