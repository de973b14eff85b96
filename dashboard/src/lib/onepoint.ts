// What the page of round trips asks for: what one point measured by itself.

import { ask, seconds, type Completeness, type Points } from './api';
import { UNKNOWN, percent } from './format';
import { stored, type Span } from './time.svelte';

export interface RoundTrip {
  point: string;
  class: string;
  algorithm: string;
  kind: string;
  part: string;
  scope: string;
  start_ns: number;
  end_ns: number;
  epochs: number;
  requests: number | null;
  matched: number;
  mean_ns: number | null;
  ci95_low_ns: number | null;
  ci95_high_ns: number | null;
  p50_ns: number | null;
  p50_low_ns: number | null;
  p50_high_ns: number | null;
  p95_ns: number | null;
  p95_low_ns: number | null;
  p95_high_ns: number | null;
  p99_ns: number | null;
  p99_low_ns: number | null;
  p99_high_ns: number | null;
  horizon_ns: number | null;
  share_above: number | null;
  share_above_low: number | null;
  share_above_high: number | null;
  reason: string | null;
}

export interface Observed {
  start_ns: number;
  end_ns: number;
  epochs: number;
  gaps: number;
  reason: string | null;
}

interface Answer {
  completeness: Completeness;
  observed: Observed[];
  reason: string | null;
}

export interface RoundTrips extends Answer {
  round_trips: RoundTrip[];
  total: RoundTrip[];
}

export interface Prefix {
  class: string;
  algorithm: string;
  scope: string;
  packets: number;
  out_of_order: number;
  retransmitted: number;
  undecided: number;
  fraction: number | null;
  fraction_max: number | null;
  verdict: string | null;
  reason: string | null;
}

export interface Reordering extends Answer {
  total: Prefix[];
}

export interface Flow {
  class: string;
  algorithm: string;
  scope: string;
  epochs: number;
  packets: number;
  bytes: number;
  packets_min: number;
  packets_max: number | null;
}

export interface Heavy extends Answer {
  total: Flow[];
}

export interface PointData {
  names: string[];
  /** Null where there is no such point. */
  point: string | null;
  span: Span;
  stepNs: number;
  trips: RoundTrips | null;
  groups: RoundTrip[];
  reordering: Reordering | null;
  heavy: Heavy | null;
}

/** The share of packets out of order that prefixes are compared with. */
export const THRESHOLD = 0.02;
/** Limits of the share of slow round trips that can be chosen. */
export const LIMITS_MS = [5, 10, 20, 50, 100, 200, 500, 1000];
/** Rows of tables. */
export const ROWS_SHOWN = 50;
/** From here on minutes are too many for one answer. */
const MINUTES_MAX_NS = 12 * 3600e9;
/** The same, where each minute has many groups or flows. */
const SUMMED_MINUTES_MAX_NS = 1.5 * 3600e9;

export async function loadPoint(wanted: { point?: string; aboveMs: number }, chosen: () => Span, signal: AbortSignal): Promise<PointData> {
  const { points, range } = await ask<Points>('points', {}, signal);
  stored.startNs = range.start_ns;
  const span = chosen();
  const names = [...new Set(points.map((point) => point.name))].sort();
  const point = names.find((name) => name === wanted.point) ?? (wanted.point ? null : names[0]) ?? null;
  const isShort = span.endNs - span.startNs <= MINUTES_MAX_NS;
  const data = { names, point, span, stepNs: isShort ? 60e9 : 3600e9, trips: null, groups: [], reordering: null, heavy: null };
  if (point == null) return data;
  const about = { point, start: seconds(span.startNs), end: seconds(span.endNs), step: isShort ? 'minute' : 'hour' };
  const above_ns = wanted.aboveMs * 1e6;
  // Rows that start within the time are summed up: hours would miss all of a short one.
  const step = span.endNs - span.startNs <= SUMMED_MINUTES_MAX_NS ? 'minute' : 'hour';
  const [trips, groups, reordering, heavy] = await Promise.all([
    ask<RoundTrips>('round-trips', { ...about, above_ns, part: '*' }, signal),
    ask<RoundTrips>('round-trips', { ...about, above_ns, scope: '*', step }, signal),
    ask<Reordering>('reordering', { ...about, threshold: THRESHOLD, step }, signal),
    ask<Heavy>('heavy', { ...about, step }, signal),
  ]);
  const ofGroups = groups.total.filter((row) => row.scope !== 'all').sort((one, other) => other.matched - one.matched);
  return { ...data, trips, groups: ofGroups, reordering, heavy };
}

/** The kinds that occurred, those with most round trips first. */
export function kindsOf(trips: RoundTrips): string[] {
  const whole = trips.total.filter((row) => row.part === '' && row.matched > 0);
  whole.sort((one, other) => other.matched - one.matched);
  return [...new Set(whole.map((row) => row.kind))];
}

/** Times over which nothing is recorded. */
export function gapsOf(observed: Observed[]): { startNs: number; endNs: number }[] {
  return observed.filter((row) => row.epochs === 0).map((row) => ({ startNs: row.start_ns, endNs: row.end_ns }));
}

/** A share with its interval. */
export function shareText(share: number | null, low: number | null, high: number | null): string {
  if (share == null || low == null || high == null) return UNKNOWN;
  return `${percent(share)} (${percent(low).replace(' %', '')} to ${percent(high).replace(' %', '')})`;
}

/** What is known of a point in a time: nothing recorded, nothing to measure, or something. */
export function stateOf(answer: Answer, found: number): 'not recorded' | 'nothing' | 'found' {
  if (found > 0) return 'found';
  return answer.completeness.epochs > 0 ? 'nothing' : 'not recorded';
}
