// Which segment and class a page is about.

import type { Segment } from './api';
import { segmentName } from './estimates';

export interface Choice {
  name: string;
  class: string;
}

/** What was asked for, if it is known; without a wish, the first. Null where there is no such segment. */
export function choose(segments: Segment[], wanted: { segment?: string; class?: string }): { chosen: Choice | null; classes: string[]; series: Segment[] } {
  const names = segments.map(segmentName);
  const name = names.find((of) => of === wanted.segment) ?? (wanted.segment ? null : names[0]);
  if (!name) return { chosen: null, classes: [], series: [] };
  const own = segments.filter((of) => segmentName(of) === name);
  const classes = [...new Set(own.map((of) => of.class))];
  const ofClass = classes.find((of) => of === wanted.class) ?? classes[0]!;
  return { chosen: { name, class: ofClass }, classes, series: own.filter((of) => of.class === ofClass) };
}
