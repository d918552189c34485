// The visible part of the width, and its changes by zooming and moving. Positions are in the unit of the layout.

/** The rounding error of zooming in and out again. */
const ROUNDING = 1e-9;

export type Interval = [number, number];

/** Moves a span into another one, and narrows it if necessary. */
export function within([from, to]: Interval, [low, high]: Interval): Interval {
  const width = Math.min(to - from, high - low);
  const begin = Math.min(Math.max(from, low), high - width);
  return [begin, begin + width];
}

/** Scales a span around a position, which stays where it is on the screen. */
export function scaled([from, to]: Interval, factor: number, around: number): Interval {
  return [around - (around - from) * factor, around + (to - around) * factor];
}

export function moved([from, to]: Interval, by: number): Interval {
  return [from + by, to + by];
}

/** Interpolates between two spans so that common content moves evenly; `part` goes from 0 to 1. */
export function between(from: Interval, to: Interval, part: number): Interval {
  const eased = 1 - (1 - part) ** 3;
  return [from[0] + (to[0] - from[0]) * eased, from[1] + (to[1] - from[1]) * eased];
}

/** Returns the text in the address for a part of a box, from 0 to 1; empty for the whole box. */
export function spanText([from, to]: Interval): string {
  return from < ROUNDING && to > 1 - ROUNDING
    ? ""
    : `${Math.max(Number(from.toPrecision(12)), 0)}~${Math.min(Number(to.toPrecision(12)), 1)}`;
}

export function spanOf(text: string): Interval {
  const [from, to] = text.split("~").map(Number);
  const isSpan = from !== undefined && to !== undefined && from >= 0 && to <= 1 && from < to;
  return isSpan ? [from, to] : [0, 1];
}

export function pathText(path: number[]): string {
  return path.join(".");
}

export function pathOf(text: string): number[] {
  const path = text.split(".").filter(Boolean).map(Number);
  return path.every((of) => Number.isInteger(of) && of >= 0) ? path : [];
}
