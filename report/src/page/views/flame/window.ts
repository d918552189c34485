// What of the width is looked at, and how zooming and moving change it. Places are in the unit of the layout.

/** What zooming in and out again may be off by. */
const ROUNDING = 1e-9;

export type Span = [number, number];

/** A span moved so that it is inside of another, and no wider. */
export function within([from, to]: Span, [low, high]: Span): Span {
  const width = Math.min(to - from, high - low);
  const begin = Math.min(Math.max(from, low), high - width);
  return [begin, begin + width];
}

/** A span made wider or narrower around a place, which stays where it is seen. */
export function scaled([from, to]: Span, factor: number, around: number): Span {
  return [around - (around - from) * factor, around + (to - around) * factor];
}

export function moved([from, to]: Span, by: number): Span {
  return [from + by, to + by];
}

/** Between two spans, so that what is in both moves evenly: `part` goes from 0 to 1. */
export function between(from: Span, to: Span, part: number): Span {
  const eased = 1 - (1 - part) ** 3;
  return [from[0] + (to[0] - from[0]) * eased, from[1] + (to[1] - from[1]) * eased];
}

/** The address's text for a part of a box, from 0 to 1; nothing for all of it. */
export function spanText([from, to]: Span): string {
  return from < ROUNDING && to > 1 - ROUNDING
    ? ""
    : `${Math.max(Number(from.toPrecision(12)), 0)}~${Math.min(Number(to.toPrecision(12)), 1)}`;
}

export function spanOf(text: string): Span {
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
