// What is known of a segment and a class, from the estimates of all algorithms that measured it.

import type { Estimate } from './api';

export type Measure = 'p99' | 'p95' | 'p50' | 'mean' | 'loss';

export const MEASURES: [Measure, string][] = [
  ['p99', '99th percentile'],
  ['p95', '95th percentile'],
  ['p50', 'median'],
  ['mean', 'mean'],
  ['loss', 'loss'],
];

/** A number with all that is needed to judge it. */
export interface Known {
  value: number | null;
  low: number | null;
  high: number | null;
  /** Little evidence: shown, but dimmed. */
  isWeak: boolean;
  /** Why it is not known. */
  reason: string | null;
  algorithm: string | null;
  packets: number | null;
  lost: [number, number] | null;
}

/** A class of traffic of a segment. */
export interface Cell {
  upstream: string;
  downstream: string;
  class: string;
  rows: Estimate[];
}

const USED_MIN = 100;
/** Half an interval this much of the value, or more, is weak. */
const WIDE = 0.25;

export function cellKey(of: { upstream: string; downstream: string; class: string }): string {
  return JSON.stringify([of.upstream, of.downstream, of.class]);
}

/** The name of a segment in addresses and in the API. */
export function segmentName(of: { upstream: string; downstream: string }): string {
  return `${of.upstream}:${of.downstream}`;
}

export function cellsOf(rows: Estimate[]): Map<string, Cell> {
  const cells = new Map<string, Cell>();
  for (const row of rows) {
    const key = cellKey(row);
    const cell = cells.get(key) ?? { upstream: row.upstream, downstream: row.downstream, class: row.class, rows: [] };
    cell.rows.push(row);
    cells.set(key, cell);
  }
  return cells;
}

type Pick = (row: Estimate) => number | null;

const VALUE: Record<Measure, Pick> = {
  p99: (row) => row.p99_ns,
  p95: (row) => row.p95_ns,
  p50: (row) => row.p50_ns,
  mean: (row) => row.mean_ns,
  loss: (row) => (row.packets ? (row.lost ?? row.loss_known?.lost_min ?? row.lost_min) : null),
};

/** Of the estimates that know a measure, the one that rests on most packets. */
export function best(rows: Estimate[], measure: Measure): Estimate | null {
  const known = rows.filter((row) => VALUE[measure](row) != null);
  return known.reduce<Estimate | null>((most, row) => (most && (most.used ?? 0) >= (row.used ?? 0) ? most : row), null);
}

export function known(rows: Estimate[], measure: Measure): Known {
  const row = best(rows, measure);
  if (!row) {
    const reason = rows.find((of) => of.reason)?.reason ?? (rows.length ? 'no algorithm here measures it' : 'no estimate is stored for this time');
    return { value: null, low: null, high: null, isWeak: false, reason, algorithm: null, packets: null, lost: null };
  }
  return measure === 'loss' ? lossOf(row) : delayOf(row, measure);
}

function delayOf(row: Estimate, measure: Exclude<Measure, 'loss'>): Known {
  const value = VALUE[measure](row)!;
  const [low, high] =
    measure === 'mean' ? [row.ci95_low_ns, row.ci95_high_ns] : [row[`${measure}_low_ns`], row[`${measure}_high_ns`]];
  const isWide = low == null || high == null || (high - low) / 2 > WIDE * Math.abs(value);
  const isWeak = isWide || (row.used ?? 0) < USED_MIN;
  return { value, low, high, isWeak, reason: row.reason, algorithm: row.algorithm, packets: row.used, lost: null };
}

/** Loss is counted, not estimated: its bounds differ where a point may not have observed packets. */
function lossOf(row: Estimate): Known {
  const of = row.lost == null ? row.loss_known : null;
  const packets = of?.packets ?? row.packets!;
  const [min, max] = [of?.lost_min ?? row.lost ?? row.lost_min!, of?.lost_max ?? row.lost ?? row.lost_max ?? packets];
  return {
    value: (min + max) / 2 / packets,
    low: min / packets,
    high: max / packets,
    isWeak: packets < USED_MIN || min !== max,
    reason: row.lost == null ? row.reason : null,
    algorithm: row.algorithm,
    packets,
    lost: [min, max],
  };
}

/** The 95 % interval of a share (Wilson, 1927), widened by what is not known of the count. */
export function lossInterval(of: Known): [number, number] | null {
  if (!of.lost || !of.packets) return null;
  return [wilson(of.lost[0], of.packets)[0], wilson(of.lost[1], of.packets)[1]];
}

function wilson(hits: number, of: number): [number, number] {
  const z2 = 1.96 ** 2;
  const [share, scale] = [hits / of, 1 + z2 / of];
  const middle = (share + z2 / (2 * of)) / scale;
  const half = (1.96 / scale) * Math.sqrt((share * (1 - share)) / of + z2 / (4 * of * of));
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

function interval(of: Known, measure: Measure): [number, number] | null {
  if (measure === 'loss') return lossInterval(of);
  return of.low == null || of.high == null ? null : [of.low, of.high];
}

/** Whether two values differ by more than both intervals allow: 1 for worse, -1 for better. */
export function change(now: Known, before: Known, measure: Measure): -1 | 0 | 1 {
  const [a, b] = [interval(now, measure), interval(before, measure)];
  if (!a || !b || now.isWeak || before.isWeak) return 0;
  return a[0] > b[1] ? 1 : a[1] < b[0] ? -1 : 0;
}
