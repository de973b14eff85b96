// Numbers as people read them. A value that is not known is null, and shown as a dash, never as 0.

export const UNKNOWN = '–';

const TIME_UNITS: [number, string][] = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns'],
];

type Known = number | null | undefined;

function unitFor(largestNs: number): [number, string] {
  return TIME_UNITS.find(([size]) => largestNs >= size) ?? [1, 'ns'];
}

function digits(value: number, decimals: number): string {
  return value.toFixed(decimals).replace(/^-(0(\.0+)?)$/, '$1');
}

/** Three significant digits, such as 12.3 ms. */
export function duration(ns: Known): string {
  if (ns == null) return UNKNOWN;
  const [size, unit] = unitFor(Math.abs(ns));
  const value = ns / size;
  const decimals = unit === 'ns' ? 0 : Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return `${digits(value, decimals)} ${unit}`;
}

/** A value with its interval, to the digits that the interval allows: 12.34 ± 0.05 ms, or 4.1 (3.9–6.2) ms. */
export function measured(ns: Known, low: Known, high: Known): string {
  if (ns == null) return UNKNOWN;
  if (low == null || high == null) return `${duration(ns)} (interval unknown)`;
  const [size, unit] = unitFor(Math.max(Math.abs(ns), Math.abs(high)));
  const half = Math.max(high - ns, ns - low, 0) / size;
  // To the nanosecond at most.
  const finest = Math.round(Math.log10(size));
  const decimals = half > 0 ? Math.min(finest, Math.max(0, 1 - Math.floor(Math.log10(half)))) : Math.min(3, finest);
  const show = (value: number) => digits(value / size, decimals);
  const isEven = Math.abs(high - ns - (ns - low)) <= 0.2 * (high - low);
  return isEven ? `${show(ns)} ± ${digits(half, decimals)} ${unit}` : `${show(ns)} (${show(low)} to ${show(high)}) ${unit}`;
}

/** A time in the unit in which another is shown, without the unit. */
export function inUnitOf(ns: number, shown: number): string {
  const [size] = unitFor(Math.abs(shown));
  const value = ns / size;
  return digits(value, Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0);
}

export function percent(share: Known): string {
  if (share == null) return UNKNOWN;
  const value = share * 100;
  if (value === 0) return '0 %';
  const decimals = value >= 10 ? 1 : value >= 1 ? 2 : value >= 0.01 ? 3 : 4;
  return `${value.toFixed(decimals)} %`;
}

export function count(number: Known): string {
  return number == null ? UNKNOWN : Math.round(number).toLocaleString('en').replaceAll(',', '\u202f');
}

export function bytes(number: Known): string {
  if (number == null) return UNKNOWN;
  if (number < 1024) return `${number} B`;
  const [size, unit] = number < 1 << 20 ? [1 << 10, 'KiB'] : [1 << 20, 'MiB'];
  return `${(number / size).toFixed(1)} ${unit}`;
}

/** 2026-11-18 05:44:52, UTC: the same for everyone who is sent the address of a page. */
export function moment(ns: number): string {
  return new Date(ns / 1e6).toISOString().slice(0, 19).replace('T', ' ');
}

export function clock(ns: number): string {
  return new Date(ns / 1e6).toISOString().slice(11, 19);
}

/** How long ago, or how long something takes, in seconds. */
export function age(seconds: number): string {
  if (seconds < 1) return 'less than 1 s';
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}
