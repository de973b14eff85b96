// How pictures look: axes, colours, and what is drawn by hand on a canvas.

import uPlot from 'uplot';
import type { Heatmap } from './api';
import { duration } from './format';
import { colour, faded } from './theme.svelte';
import type { Span } from './time.svelte';

export type PlotOptions = Omit<uPlot.Options, 'width' | 'height'>;

/** All pictures of a page share the position of the pointer. */
const SYNC = 'twixt';
const AXIS_WIDTH = 74;

export interface Mark {
  atNs: number;
  kind: 'raised' | 'other';
  label: string;
}

function axisStyle(): Partial<uPlot.Axis> {
  const [ink, edge] = [colour('soft'), faded('soft', 0.16)];
  return { stroke: ink, grid: { stroke: edge, width: 1 }, ticks: { stroke: edge, width: 1 }, font: '12px system-ui, sans-serif' };
}

export function timeAxis(): uPlot.Axis {
  return { ...axisStyle(), size: 34, space: 90, values: (_, splits, __, ___, step) => splits.map((at) => timeText(at, step)) };
}

/** As exact as the distance of two labels allows. */
function timeText(seconds: number, step: number): string {
  const text = new Date(seconds * 1e3).toISOString();
  return step >= 86400 ? text.slice(0, 10) : step >= 21600 ? `${text.slice(5, 10)} ${text.slice(11, 16)}` : step >= 60 ? text.slice(11, 16) : text.slice(11, 19);
}

export function valueAxis(text: (value: number) => string): uPlot.Axis {
  return { ...axisStyle(), size: AXIS_WIDTH, filter: (_, splits) => splits, values: (_, splits) => splits.map((value) => (value == null ? '' : text(value))) };
}

/** What pictures over time have in common. */
export function overTime(span: Span, y: uPlot.Scale, axis: uPlot.Axis): PlotOptions {
  return {
    scales: { x: { time: true, range: [span.startNs / 1e9, span.endNs / 1e9] }, y },
    axes: [timeAxis(), axis],
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), 'Etc/UTC'),
    cursor: { sync: { key: SYNC }, points: { size: 6 } },
    legend: { live: true },
    series: [{ value: '{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}' }],
  };
}

/** Hatches the times of which nothing is known, and draws alerts as lines. */
export function background(gaps: { startNs: number; endNs: number }[], marks: Mark[]): (plot: uPlot) => void {
  return (plot) => {
    const { ctx, bbox } = plot;
    const x = (ns: number) => Math.min(bbox.left + bbox.width, Math.max(bbox.left, plot.valToPos(ns / 1e9, 'x', true)));
    ctx.save();
    ctx.fillStyle = faded('warn', 0.16);
    for (const { startNs, endNs } of gaps) ctx.fillRect(x(startNs), bbox.top, Math.max(1, x(endNs) - x(startNs)), bbox.height);
    ctx.lineWidth = devicePixelRatio;
    for (const { atNs, kind } of marks) {
      const left = plot.valToPos(atNs / 1e9, 'x', true);
      if (left < bbox.left || left > bbox.left + bbox.width) continue;
      ctx.strokeStyle = ctx.fillStyle = kind === 'raised' ? colour('worse') : colour('better');
      ctx.setLineDash([4, 3]);
      ctx.beginPath();
      ctx.moveTo(left, bbox.top);
      ctx.lineTo(left, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillRect(left - 3, bbox.top, 6, 6);
    }
    ctx.restore();
  };
}

function isLone(values: ArrayLike<number | null | undefined>, at: number): boolean {
  return values[at] != null && values[at - 1] == null && values[at + 1] == null;
}

/** Dots for values without a neighbour, of which a line shows nothing. */
export const lone: uPlot.Series.Points = {
  size: 5,
  show: true,
  filter: (plot, series) => {
    const values = plot.data[series]!;
    return Array.from(values, (_, at) => at).filter((at) => isLone(values, at));
  },
};

/** The intervals of such values, of which a band shows nothing. Both ends are series of their own. */
export function loneIntervals(series: number, low: number, high: number, stroke: () => string): (plot: uPlot) => void {
  return (plot) => {
    const { ctx } = plot;
    const [times, values, lows, highs] = [plot.data[0], plot.data[series]!, plot.data[low]!, plot.data[high]!];
    ctx.save();
    [ctx.lineWidth, ctx.strokeStyle] = [1.5 * devicePixelRatio, stroke()];
    ctx.setLineDash([]);
    ctx.beginPath();
    for (let at = 0; at < times.length; at += 1) {
      if (!isLone(values, at) || lows[at] == null || highs[at] == null) continue;
      const left = plot.valToPos(times[at]!, 'x', true);
      ctx.moveTo(left, plot.valToPos(lows[at]!, 'y', true));
      ctx.lineTo(left, plot.valToPos(highs[at]!, 'y', true));
    }
    ctx.stroke();
    ctx.restore();
  };
}

/** Buckets of delay over time: the darker, the larger the share of the packets of that time. */
export function heat(map: Heatmap, stepNs: number): (plot: uPlot) => void {
  return (plot) => {
    const { ctx, bbox } = plot;
    const bound = (number: number) => 2 ** (number / 2 ** map.scale);
    const shades = Array.from({ length: 32 }, (_, number) => faded('heat', 0.08 + (0.92 * (number + 1)) / 32));
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const column of map.columns) {
      const all = column.packets.reduce((sum, packets) => sum + packets, column.not_positive);
      const left = Math.floor(plot.valToPos(column.start_ns / 1e9, 'x', true));
      const right = Math.ceil(plot.valToPos((column.start_ns + stepNs) / 1e9, 'x', true));
      column.packets.forEach((packets, number) => {
        if (packets <= 0) return;
        // The root shows a few packets in a hundred as well.
        ctx.fillStyle = shades[Math.min(31, Math.floor(32 * Math.sqrt(packets / all)))]!;
        const top = plot.valToPos(bound(column.first + number + 1), 'y', true);
        const bottom = plot.valToPos(bound(column.first + number), 'y', true);
        ctx.fillRect(left, Math.floor(top), right - left, Math.ceil(bottom) - Math.floor(top));
      });
    }
    ctx.restore();
  };
}

/** The delays that a heat map spans, with some room. */
export function heatRange(map: Heatmap): [number, number] {
  const bound = (number: number) => 2 ** (number / 2 ** map.scale);
  const first = Math.min(...map.columns.map((column) => column.first));
  const last = Math.max(...map.columns.map((column) => column.first + column.packets.length));
  return Number.isFinite(first) ? [bound(first) * 0.9, bound(last) * 1.1] : [1e5, 1e8];
}

/** Between two values of a log scale: 1, 2, 5 of each power of ten. */
export function logSplits(low: number, high: number): number[] {
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const factor of [1, 2, 5]) found.push(factor * 10 ** power);
  }
  const inside = found.filter((value) => value >= low && value <= high);
  return inside.length > 8 ? inside.filter((value) => /^1(e|0*$)/.test(String(value))) : inside;
}

/** A scale with some room above, from 0, or from below it where clocks disagree. */
export const fromZero: uPlot.Scale = { range: (_, low, high) => [Math.min(0, low ?? 0), (high ?? 1) * 1.05 || 1] };

export function delayAxis(): uPlot.Axis {
  return valueAxis((ns) => (ns === 0 ? '0' : duration(ns)));
}
