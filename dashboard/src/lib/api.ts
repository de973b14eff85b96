// The only place that talks to the collector. The token is kept until the tab is closed, never longer.

export interface Moment {
  start: string;
  end: string;
  start_ns: number;
  end_ns: number;
}

export interface Completeness {
  complete: boolean;
  epochs: number;
  gaps: number;
  stored: Moment | null;
  problems: string[];
}

export interface Segment {
  domain: string;
  upstream: string;
  downstream: string;
  class: string;
  algorithm: string;
  epoch_ns: number;
  stored: Moment;
}

export interface Estimate {
  domain: string;
  upstream: string;
  downstream: string;
  class: string;
  algorithm: string;
  scope: string;
  step: string;
  start_ns: number;
  end_ns: number;
  epochs: number;
  gaps: number;
  packets: number | null;
  used: number | null;
  lost: number | null;
  lost_min: number | null;
  lost_max: number | null;
  mean_ns: number | null;
  stddev_ns: number | null;
  ci95_low_ns: number | null;
  ci95_high_ns: number | null;
  min_ns: number | null;
  p50_ns: number | null;
  p50_low_ns: number | null;
  p50_high_ns: number | null;
  p95_ns: number | null;
  p95_low_ns: number | null;
  p95_high_ns: number | null;
  p99_ns: number | null;
  p99_low_ns: number | null;
  p99_high_ns: number | null;
  p999_ns: number | null;
  p999_low_ns: number | null;
  p999_high_ns: number | null;
  max_ns: number | null;
  jitter_ns: number | null;
  clock_offset_ns: number | null;
  clock_error_ns: number | null;
  reason: string | null;
  bytes: number | null;
  late_epochs: number;
  upstream_dropped: number | null;
  downstream_dropped: number | null;
  upstream_late: number | null;
  downstream_late: number | null;
  strays: number | null;
  /** In totals: the loss of those epochs of which it is known. */
  loss_known?: { packets: number; lost_min: number; lost_max: number } | null;
}

export interface Estimates {
  completeness: Completeness;
  estimates: Estimate[];
  next: string | null;
}

export interface Totals {
  completeness: Completeness;
  totals: Estimate[];
  reason: string | null;
}

export interface Segments {
  range: { start_ns: number | null; end_ns: number | null };
  segments: Segment[];
}

export interface Point {
  domain: string;
  name: string;
  segments: number;
  stored: Moment | null;
  last_ns: number | null;
  packets: number | null;
  skipped: number | null;
  dropped: number | null;
  late: number | null;
  agent_version: string | null;
  spool_epochs: number | null;
  spool_bytes: number | null;
  spool_discarded: number | null;
}

export interface Points {
  range: { start_ns: number | null; end_ns: number | null };
  points: Point[];
}

export interface ClockEnd {
  point: string;
  time_source: string;
  bound_ns: number | null;
}

export interface Clock {
  domain: string;
  class: string;
  algorithm: string;
  range: Moment;
  upstream: ClockEnd;
  downstream: ClockEnd;
  error_ns: number | null;
  realigned_epochs: number;
}

export interface Clocks {
  clocks: Clock[];
}

export interface Histogram {
  completeness: Completeness;
  total: Estimate[];
  buckets: { from_ns: number | null; to_ns: number; packets: number }[] | null;
  reason: string | null;
}

export interface HeatColumn {
  algorithm: string;
  start_ns: number;
  end_ns: number;
  not_positive: number;
  first: number;
  packets: number[];
}

export interface Heatmap {
  completeness: Completeness;
  scale: number;
  columns: HeatColumn[];
  reason: string | null;
  next: string | null;
}

export interface Gaps {
  gaps: { upstream: string; downstream: string; class: string; algorithm: string; start_ns: number; end_ns: number; epochs: number; reason: string }[];
  next: string | null;
}

export interface Epoch {
  point: string;
  class: string;
  algorithm: string;
  settings: string;
  stored_bytes: number;
  time_source: string;
}

export interface Evidence {
  upstream: Epoch[];
  downstream: Epoch[];
}

/** An alert on one segment and class, as requests about it name it. */
export interface AlertTarget {
  alert: string;
  domain: string;
  upstream: string;
  downstream: string;
  class: string;
  algorithm: string;
}

export interface Alert extends AlertTarget {
  state: 'raised' | 'clear' | 'unknown';
  measure: string;
  unit: string;
  value: number | null;
  above: number;
  start_ns: number;
  end_ns: number;
  packets: number;
  reason: string | null;
  late: boolean;
  acknowledged: { by: string; at_ns: number } | null;
  silenced: { by: string; until_ns: number } | null;
}

export interface AlertRule {
  alert: string;
  segment: string;
  class: string | null;
  algorithm: string | null;
  measure: string;
  unit: string;
  above: number;
  clear_below: number | null;
  window_ns: number;
  minimum_packets: number;
}

export interface Alerts {
  rules: AlertRule[];
  standing: Alert[];
  changes: Alert[];
  may_silence: boolean;
}

/** What is in an incident bundle, as far as pages say it. */
export interface Bundle {
  written_by: { version: string; host: string | null; reader: string | null };
  written_ns: number;
  segment: { upstream: string; downstream: string };
  range: Moment;
  left_out: string[];
  problems: string[];
}

export interface Source {
  kind: 'collector' | 'bundle';
  bundle: Bundle | null;
}

/** What went wrong, by what can be done about it. */
export class Failure extends Error {
  constructor(
    readonly kind: 'token' | 'busy' | 'refused' | 'unreachable',
    message: string,
    readonly retrySeconds = 0,
  ) {
    super(message);
  }
}

const TOKEN = 'twixt-token';
/** How far the collector's clock is ahead of this one. */
let aheadMs = 0;
/** Where time stands still. */
let standingNs: number | null = null;

export function token(): string | null {
  return sessionStorage.getItem(TOKEN);
}

export function useToken(text: string | null): void {
  if (text) sessionStorage.setItem(TOKEN, text);
  else sessionStorage.removeItem(TOKEN);
}

/** The time at the collector. */
export function nowNs(): number {
  return standingNs ?? (Date.now() + aheadMs) * 1e6;
}

/** What answers is of one time, and its end is now. */
export function standStill(ns: number): void {
  standingNs = ns;
}

export type Parameters = Record<string, string | number | null | undefined>;

export function address(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value != null && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `/v1/${path}?${text}` : `/v1/${path}`;
}

/** A time in the words of the API. */
export function seconds(ns: number): string {
  return (ns / 1e9).toFixed(6);
}

export function ask<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
  return request(address(path, parameters), { signal });
}

/** Changes something at the collector. */
export function change<T>(path: string, document: object): Promise<T> {
  return request(address(path), { method: 'POST', body: JSON.stringify(document) });
}

/** Has the browser save what is answered, under the name that the answer gives it. */
export async function save(path: string, parameters: Parameters): Promise<void> {
  const response = await respond(address(path, parameters), {});
  const name = /filename="([^"]*)"/.exec(response.headers.get('content-disposition') ?? '')?.[1] ?? path;
  const held = URL.createObjectURL(await response.blob());
  Object.assign(document.createElement('a'), { href: held, download: name }).click();
  // The browser reads it after the click.
  setTimeout(() => URL.revokeObjectURL(held), 60_000);
}

async function request<T>(url: string, init: RequestInit): Promise<T> {
  return (await (await respond(url, init)).json()) as T;
}

async function respond(url: string, { signal, method, body }: RequestInit): Promise<Response> {
  const headers: Record<string, string> = body ? { 'Content-Type': 'application/json' } : {};
  const shown = token();
  if (shown) headers.Authorization = `Bearer ${shown}`;
  let response: Response;
  try {
    response = await fetch(url, { method, body, headers, signal, cache: 'no-store' });
  } catch (problem) {
    if (signal?.aborted) throw problem;
    throw new Failure('unreachable', 'The collector does not answer.');
  }
  const date = Date.parse(response.headers.get('date') ?? '');
  // The header counts whole seconds: half of one is its mean error.
  if (date && Math.abs(date + 500 - Date.now()) > 2000) aheadMs = date + 500 - Date.now();
  if (response.ok) return response;
  const said = await response.json().then((document) => String(document.error), () => response.statusText);
  if (response.status === 401) throw new Failure('token', said);
  if (response.status === 429 || response.status === 503) {
    throw new Failure('busy', said, Number(response.headers.get('retry-after')) || 1);
  }
  throw new Failure('refused', said);
}
