// Which time is looked at: the last so many minutes, or from one moment to another.

import { nowNs } from './api';
import { route, set } from './route.svelte';
import { source } from './source.svelte';

export const RANGES: [string, number][] = [
  ['5m', 300],
  ['15m', 900],
  ['1h', 3600],
  ['6h', 21600],
  ['24h', 86400],
  ['7d', 604800],
];

export interface Span {
  startNs: number;
  endNs: number;
}

/** What is stored, as soon as that is known. */
export const stored: { startNs: number | null } = $state({ startNs: null });

/** Whether the page follows the clock. */
export function isLive(): boolean {
  return !source.bundle && !(route.values.start && route.values.end);
}

/** The chosen length; without a choice, one that what is stored fills, and an hour at most. */
export function rangeName(): string {
  const chosen = RANGES.find(([name]) => name === route.values.range);
  if (chosen) return chosen[0];
  const old = stored.startNs == null ? 0 : (nowNs() - stored.startNs) / 1e9;
  return old <= 300 ? '5m' : old <= 900 ? '15m' : '1h';
}

export function span(): Span {
  const { start, end } = route.values;
  if (start && end) {
    const [startNs, endNs] = [Date.parse(start) * 1e6, Date.parse(end) * 1e6];
    if (startNs < endNs) return { startNs, endNs };
  }
  // Of a bundle, all is shown unless less is chosen.
  if (source.bundle && !route.values.range) return { startNs: source.bundle.range.start_ns, endNs: source.bundle.range.end_ns };
  const seconds = RANGES.find(([name]) => name === rangeName())![1];
  const endNs = nowNs();
  return { startNs: endNs - seconds * 1e9, endNs };
}

export function zoom(startNs: number, endNs: number): void {
  const text = (ns: number) => new Date(ns / 1e6).toISOString();
  set({ start: text(startNs), end: text(endNs), range: null });
}

/** Back to the clock, or to all of a bundle. */
export function follow(range?: string): void {
  set({ start: null, end: null, range: range ?? (source.bundle ? null : route.values.range) });
}

/** Rows of an answer that are still drawn one by one. */
const ROWS_MAX = 1000;

/** The finest step of which a picture can show all rows. */
export function stepFor({ startNs, endNs }: Span, epochNs: number): 'epoch' | 'minute' | 'hour' {
  const length = endNs - startNs;
  if (epochNs > 0 && length / epochNs <= ROWS_MAX) return 'epoch';
  return length / 60e9 <= 1500 ? 'minute' : 'hour';
}

/** Rows to sum up: short ones for a short time, where the ends of long ones would count. */
export function totalStep({ startNs, endNs }: Span): 'epoch' | 'minute' | 'hour' {
  const length = endNs - startNs;
  return length > 25 * 3600e9 ? 'hour' : length > 600e9 ? 'minute' : 'epoch';
}

export function stepNs(step: string, epochNs: number): number {
  return step === 'epoch' ? epochNs : step === 'minute' ? 60e9 : 3600e9;
}

/** How often a page asks again: what is long changes slowly. */
export function refreshMs({ startNs, endNs }: Span): number {
  return Math.min(60_000, Math.max(2_000, (endNs - startNs) / 1e6 / 150));
}
