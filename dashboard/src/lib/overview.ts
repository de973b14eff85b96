// What the overview asks for, and what it makes of the answers.

import { ask, nowNs, seconds, type Alerts, type Estimate, type Points, type Segments, type Totals } from './api';
import { cellKey, cellsOf, change, known, lossInterval, type Cell, type Known, type Measure } from './estimates';
import { stored, totalStep, type Span } from './time.svelte';

export interface OverviewData {
  segments: Segments;
  points: Points;
  span: Span;
  /** Of the chosen time, of the time it is compared with, and of the last minute. */
  now: Totals;
  before: Totals | null;
  beforeSpan: Span;
  against: 'yesterday' | 'before';
  minute: Totals;
  alerts: Alerts;
  cells: Map<string, Cell>;
  beforeCells: Map<string, Cell>;
  atNs: number;
}

const DAY_NS = 86400e9;

function total(span: Span, step: string, signal: AbortSignal): Promise<Totals> {
  return ask<Totals>('totals', { start: seconds(span.startNs), end: seconds(span.endNs), step }, signal);
}

function moved({ startNs, endNs }: Span, ns: number): Span {
  // Both ends are inclusive in the API.
  return { startNs: startNs - ns, endNs: endNs - ns - 1000 };
}

export async function loadOverview(chosen: () => Span, signal: AbortSignal): Promise<OverviewData> {
  const [segments, points] = await Promise.all([ask<Segments>('segments', {}, signal), ask<Points>('points', {}, signal)]);
  stored.startNs = segments.range.start_ns;
  const span = chosen();
  const first = segments.range.start_ns ?? nowNs();
  const against = first <= span.startNs - DAY_NS ? 'yesterday' : 'before';
  const beforeSpan = moved(span, against === 'yesterday' ? DAY_NS : span.endNs - span.startNs);
  const last = { startNs: span.endNs - 60e9, endNs: span.endNs };
  const hasBefore = first < beforeSpan.endNs;
  const [now, minute, alerts, before] = await Promise.all([
    total(span, totalStep(span), signal),
    total(last, 'epoch', signal),
    ask<Alerts>('alerts', {}, signal),
    hasBefore ? total(beforeSpan, totalStep(span), signal) : null,
  ]);
  const [cells, beforeCells] = [cellsOf(now.totals), cellsOf(before?.totals ?? [])];
  return { segments, points, span, now, before, beforeSpan, against, minute, alerts, cells, beforeCells, atNs: nowNs() };
}

/** Names of the alerts that were raised in this time, by segment and class. */
export function raised(data: OverviewData): Map<string, string> {
  const inTime = data.alerts.changes.filter((of) => of.state === 'raised' && of.end_ns >= data.span.startNs && of.start_ns <= data.span.endNs);
  const names = new Map<string, Set<string>>();
  for (const of of inTime) names.set(cellKey(of), (names.get(cellKey(of)) ?? new Set()).add(of.alert));
  return new Map([...names].map(([key, own]) => [key, [...own].join(', ')]));
}

export interface Ranked {
  cell: Cell;
  known: Known;
}

/** The largest, of which enough is known. */
export function worst(rows: Estimate[], measure: Measure, count: number): Ranked[] {
  const ranked = [...cellsOf(rows).values()].map((cell) => ({ cell, known: known(cell.rows, measure) }));
  const rank = ({ known: of }: Ranked) => (measure === 'loss' ? (lossInterval(of)?.[0] ?? -1) : (of.value ?? -Infinity));
  const usable = ranked.filter((of) => of.known.value != null && (measure !== 'loss' || of.known.value > 0));
  return usable.sort((one, other) => rank(other) - rank(one)).slice(0, count);
}

/** Whether anything is known of any segment. */
export function isKnown(rows: Estimate[], measure: Measure): boolean {
  return [...cellsOf(rows).values()].some((cell) => known(cell.rows, measure).value != null);
}

export interface Changed {
  cell: Cell;
  measure: Measure;
  now: Known;
  before: Known;
  direction: -1 | 1;
}

/** What differs by more than both intervals allow, the largest factor first. */
export function changed(data: OverviewData): Changed[] {
  const found: Changed[] = [];
  for (const [key, cell] of data.cells) {
    const earlier = data.beforeCells.get(key);
    if (!earlier) continue;
    for (const measure of ['p99', 'mean', 'loss'] as Measure[]) {
      const [now, before] = [known(cell.rows, measure), known(earlier.rows, measure)];
      const direction = change(now, before, measure);
      if (direction !== 0) found.push({ cell, measure, now, before, direction });
    }
  }
  const factor = ({ now, before }: Changed) => Math.abs(Math.log((now.value || 1e-6) / (before.value || 1e-6)));
  return found.sort((one, other) => factor(other) - factor(one));
}
