// The segments between two places, and who added what.

import { ask, seconds, type Estimate, type Segments, type Totals } from './api';
import { best, cellKey, cellsOf, known, lossInterval, type Known } from './estimates';
import { layout, parts as partsBetween, walker } from './places';
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

/** A value with the ends of its interval. */
export interface Bounded {
  value: number;
  low: number;
  high: number;
}

/** Delay, variance and loss of a path. Of a variance no interval is known. */
export interface Whole {
  mean: Bounded | null;
  variance: number | null;
  loss: Bounded | null;
}

export interface PathData {
  places: string[];
  classes: string[];
  from: string | null;
  to: string | null;
  class: string;
  span: Span;
  parts: Part[] | null;
  /** What all parts come to, as far as all of them are known. */
  sum: Whole;
  /** What was measured from end to end, if that is a segment of its own. */
  whole: Whole | null;
  /** What the parts do not explain of the whole. */
  rest: Whole | null;
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
  const found = from != null && to != null && from !== to ? partsBetween(ends, from, to) : null;
  const base = { places: names, classes, from, to, class: ofClass, span, sum: UNKNOWN, whole: null, rest: null, unmeasured: [] };
  if (!found?.length) return { ...base, parts: null };
  const { totals } = await ask<Totals>('totals', { class: ofClass, start: seconds(span.startNs), end: seconds(span.endNs), step: totalStep(span) }, signal);
  const cells = cellsOf(totals);
  const rowsOf = (upstream: string, downstream: string) => cells.get(cellKey({ upstream, downstream, class: ofClass }))?.rows ?? [];
  const parts = partsOf(found, rowsOf);
  const ofWhole = found.length > 1 ? rowsOf(found[0]!.upstream, found.at(-1)!.downstream) : [];
  const [sum, whole] = [sumOf(parts), ofWhole.length ? wholeOf(ofWhole) : null];
  const unmeasured = found.slice(1).flatMap((part, at) => (part.upstream === found[at]!.downstream ? [] : [lines.find((line) => line.upstream === part.upstream)!.from]));
  return { ...base, parts, sum, whole, rest: whole && restOf(whole, sum), unmeasured };
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

const UNKNOWN: Whole = { mean: null, variance: null, loss: null };

function meanOf({ value, low, high }: Known): Bounded | null {
  return value == null || low == null || high == null ? null : { value, low, high };
}

function lossOf(of: Known): Bounded | null {
  const ends = lossInterval(of);
  return ends && of.value != null ? { value: of.value, low: ends[0], high: ends[1] } : null;
}

function wholeOf(rows: Estimate[]): Whole {
  const deviation = best(rows, 'mean')?.stddev_ns;
  return { mean: meanOf(known(rows, 'mean')), variance: deviation == null ? null : deviation ** 2, loss: lossOf(known(rows, 'loss')) };
}

/**
 * Ends are added to ends: that holds whether or not the errors of segments have to do with each other. Variances are
 * added as those of independent delays are; what passes all segments is the product of what passes each.
 */
function sumOf(parts: Part[]): Whole {
  const [means, losses] = [parts.map(({ mean }) => meanOf(mean)), parts.map(({ loss }) => lossOf(loss))];
  const ends = ['value', 'low', 'high'] as const;
  const over = (all: (Bounded | null)[], join: (values: number[]) => number): Bounded | null => {
    const known = all.filter((of) => of != null);
    if (known.length < all.length) return null;
    const [value, low, high] = ends.map((end) => join(known.map((of) => of[end])));
    return { value: value!, low: low!, high: high! };
  };
  const add = (values: number[]) => values.reduce((sum, value) => sum + value, 0);
  return {
    mean: over(means, add),
    variance: parts.some(({ deviation }) => deviation == null) ? null : add(parts.map(({ deviation }) => deviation! ** 2)),
    loss: over(losses, (shares) => 1 - shares.reduce((passed, share) => passed * (1 - share), 1)),
  };
}

function restOf(whole: Whole, sum: Whole): Whole {
  const less = (of: Bounded | null, by: Bounded | null) => of && by && { value: of.value - by.value, low: of.low - by.high, high: of.high - by.low };
  const variance = whole.variance == null || sum.variance == null ? null : whole.variance - sum.variance;
  return { mean: less(whole.mean, sum.mean), variance, loss: less(whole.loss, sum.loss) };
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
