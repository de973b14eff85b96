// What the page of a segment asks for, and the rows as pictures need them.

import { ask, seconds, type Alert, type Alerts, type Clocks, type Estimate, type Evidence, type Heatmap, type Histogram, type Segment, type Segments, type Totals } from './api';
import { choose, type Choice } from './choice';
import { segmentName } from './estimates';
import type { Mark } from './pictures';
import { stepFor, stepNs, stored, type Span } from './time.svelte';

export interface SegmentData {
  known: Segment[];
  chosen: Choice | null;
  classes: string[];
  span: Span;
  step: string;
  stepNs: number;
  rows: Estimate[];
  isCut: boolean;
  heatmap: Heatmap | null;
  totals: Estimate[];
  now: Histogram | null;
  before: Histogram | null;
  evidence: Evidence | null;
  clocks: Clocks | null;
  alerts: Alert[];
}

/** What pictures of a segment over time are made of. */
export interface Moments {
  rows: Estimate[];
  span: Span;
  stepNs: number;
  gaps: { startNs: number; endNs: number }[];
  marks: Mark[];
}

/** Rows of one segment and class that are asked for at a time. */
const ROWS_MAX = 10_000;

export async function loadSegment(wanted: { segment?: string; class?: string }, chosen: () => Span, signal: AbortSignal): Promise<SegmentData> {
  const { segments, range } = await ask<Segments>('segments', {}, signal);
  stored.startNs = range.start_ns;
  const span = chosen();
  const { chosen: choice, classes, series } = choose(segments, wanted);
  const empty = { known: segments, classes: [], span, step: 'epoch', stepNs: 1e9, rows: [], isCut: false, totals: [], heatmap: null, now: null, before: null, evidence: null, clocks: null, alerts: [] };
  if (!choice) return { ...empty, chosen: null };
  const { name, class: ofClass } = choice;
  const epochNs = Math.max(...series.map((of) => of.epoch_ns));
  const step = stepFor(span, epochNs);
  const about = { segment: name, class: ofClass };
  const time = ({ startNs, endNs }: Span) => ({ start: seconds(startNs), end: seconds(endNs) });
  const earlier = { startNs: 2 * span.startNs - span.endNs, endNs: span.startNs - 1000 };
  const last = { startNs: span.endNs - 3 * Math.max(epochNs, 60e9), endNs: span.endNs };
  const [estimates, totals, heatmap, now, before, evidence, clocks, alerts] = await Promise.all([
    ask<{ estimates: Estimate[]; next: string | null }>('estimates', { ...about, ...time(span), step, limit: ROWS_MAX }, signal),
    ask<Totals>('totals', { ...about, ...time(span), step }, signal),
    ask<Heatmap>('heatmap', { ...about, ...time(span), step }, signal),
    ask<Histogram>('histogram', { ...about, ...time(span), step }, signal),
    ask<Histogram>('histogram', { ...about, ...time(earlier), step }, signal),
    ask<Evidence>('evidence', { segment: name, ...time(last), limit: 24 }, signal),
    ask<Clocks>('clocks', {}, signal),
    ask<Alerts>('alerts', {}, signal),
  ]);
  // A class without a name cannot be asked for: an omitted class means all of them.
  const rows = estimates.estimates.filter((row) => row.class === ofClass);
  return {
    ...empty, chosen: choice, classes, step, stepNs: stepNs(step, epochNs), rows, isCut: estimates.next != null, totals: totals.totals.filter((row) => row.class === ofClass),
    heatmap, now, before, evidence, clocks, alerts: alerts.changes.filter((of) => segmentName(of) === name && of.class === ofClass),
  };
}

type Pick = (row: Estimate) => number | null;

/**
 * Columns for a picture: seconds, and what is picked. Where an epoch is missing or has no estimate, a row
 * without values makes a gap.
 */
export function columnsOf(rows: Estimate[], stepNs: number, picks: Pick[]): (number | null)[][] {
  const times: number[] = [];
  const values: (number | null)[][] = picks.map(() => []);
  const push = (ns: number, row: Estimate | null) => {
    times.push(ns / 1e9);
    picks.forEach((pick, number) => values[number]!.push(row ? pick(row) : null));
  };
  let lastNs: number | null = null;
  for (const row of rows) {
    if (lastNs != null && row.start_ns - lastNs > 1.5 * stepNs) push(lastNs + stepNs, null);
    push(row.start_ns, row.epochs > 0 ? row : null);
    lastNs = row.start_ns;
  }
  // Bars are as wide as two times are apart: a single one would fill the picture.
  if (lastNs != null) push(lastNs + stepNs, null);
  return [times, ...values];
}

/** The algorithm whose rows know a value most often. */
export function mainAlgorithm(rows: Estimate[], pick: Pick): string | null {
  const counts = new Map<string, number>();
  for (const row of rows) {
    if (pick(row) != null) counts.set(row.algorithm, (counts.get(row.algorithm) ?? 0) + (row.used ?? 1));
  }
  return [...counts].sort((one, other) => other[1] - one[1])[0]?.[0] ?? null;
}

/** Times without data, with their reasons. */
export function gapsOf(rows: Estimate[]): { startNs: number; endNs: number; reason: string }[] {
  const gaps = rows.filter((row) => row.epochs === 0 || row.gaps > 0);
  const unique = new Map(gaps.map((row) => [row.start_ns, { startNs: row.start_ns, endNs: row.end_ns, reason: row.reason ?? 'no reason was recorded' }]));
  return [...unique.values()];
}

/** A cumulative distribution: delay in nanoseconds, and the share of packets at or below it. */
export function cdfOf(histogram: Histogram | null): [number, number][] {
  const buckets = histogram?.buckets ?? [];
  const all = buckets.reduce((sum, bucket) => sum + bucket.packets, 0);
  let below = 0;
  const start: [number, number][] = buckets[0]?.from_ns ? [[buckets[0].from_ns, 0]] : [];
  const rest = buckets.map(({ to_ns, packets }) => {
    below += packets;
    return [to_ns, below / all] as [number, number];
  });
  return [...start, ...rest];
}
