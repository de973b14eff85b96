// What the page of flows asks for: the epochs of a short time, paired again, flow by flow.

import { ask, seconds, type Completeness, type Estimate, type Segment, type Segments } from './api';
import { choose, type Choice } from './choice';
import { known, lossInterval, type Known } from './estimates';
import { stored, type Span } from './time.svelte';

export interface Flows {
  completeness: Completeness;
  found: number;
  flows: Estimate[];
  reason: string | null;
}

/** One flow, epoch by epoch. */
export interface Flow {
  completeness: Completeness;
  scope: string;
  estimates: Estimate[];
  total: Estimate[];
  reason: string | null;
}

export interface FlowsData {
  known: Segment[];
  chosen: Choice | null;
  classes: string[];
  span: Span;
  /** Whether the time had to be cut: pairing again takes long. */
  isShortened: boolean;
  order: Order;
  answer: Flows | null;
  /** The flow that was opened. */
  one: Flow | null;
  epochNs: number;
}

export type Order = 'delay' | 'deviation' | 'loss';

export const FLOWS_MAX = 1000;
/** Epochs of all algorithms that are paired again for one page: a few seconds of work. */
const EPOCHS_MAX = 300;

export async function loadFlows(
  wanted: { segment?: string; class?: string; order: Order; min: number; flow?: string },
  chosen: () => Span,
  signal: AbortSignal,
): Promise<FlowsData> {
  const { segments, range } = await ask<Segments>('segments', {}, signal);
  stored.startNs = range.start_ns;
  const asked = chosen();
  const { chosen: choice, classes, series } = choose(segments, wanted);
  const empty = { known: segments, classes: [], span: asked, isShortened: false, order: wanted.order, answer: null, one: null, epochNs: 1e9 };
  if (!choice) return { ...empty, chosen: null };
  const epochNs = Math.min(...series.map((of) => of.epoch_ns));
  const longest = (EPOCHS_MAX / series.length) * epochNs;
  const isShortened = asked.endNs - asked.startNs > longest;
  const span = { startNs: Math.max(asked.startNs, asked.endNs - longest), endNs: asked.endNs };
  const about = { segment: choice.name, class: choice.class, start: seconds(span.startNs), end: seconds(span.endNs) };
  const ofAll = { ...about, order: wanted.order, min_packets: wanted.min > 1 ? wanted.min : null, limit: FLOWS_MAX };
  const [answer, one] = await Promise.all([
    ask<Flows>('flows', ofAll, signal),
    wanted.flow ? ask<Flow>('flow', { ...about, scope: wanted.flow }, signal) : null,
  ]);
  return { ...empty, chosen: choice, classes, span, isShortened, answer, one, epochNs };
}

export type Column = 'scope' | 'packets' | 'mean' | 'p95' | 'deviation' | 'loss';

export interface FlowRow {
  scope: string;
  algorithm: string;
  packets: number | null;
  mean: Known;
  p95: Known;
  deviation: number | null;
  loss: Known;
  reason: string | null;
}

export function flowRow(row: Estimate): FlowRow {
  return {
    scope: row.scope, algorithm: row.algorithm, packets: row.packets, reason: row.reason,
    mean: known([row], 'mean'), p95: known([row], 'p95'), deviation: row.stddev_ns, loss: known([row], 'loss'),
  };
}

/** In the order of a column; what is not known comes last, whatever the direction. */
export function sorted(rows: FlowRow[], column: Column, isDescending: boolean): FlowRow[] {
  const rank: Record<Exclude<Column, 'scope'>, (row: FlowRow) => number | null> = {
    packets: (row) => row.packets,
    mean: (row) => row.mean.value,
    p95: (row) => row.p95.value,
    deviation: (row) => row.deviation,
    loss: (row) => lossInterval(row.loss)?.[0] ?? null,
  };
  const sign = isDescending ? -1 : 1;
  if (column === 'scope') return [...rows].sort((one, other) => sign * (one.scope < other.scope ? -1 : one.scope > other.scope ? 1 : 0));
  return [...rows].sort((one, other) => {
    const [a, b] = [rank[column](one), rank[column](other)];
    return a == null ? (b == null ? 0 : 1) : b == null ? -1 : sign * (a - b);
  });
}

/** A text as one word of a shell. */
export function quoted(text: string): string {
  return /^[\w.:,/=@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
