// The timeline as text: for tooltips and screen readers.

import { FAILED, UNFINISHED } from "../../../engine/timeline/tiles";
import { DENSE } from "../../../engine/timeline/visible-spans";
import { functionName, type Names } from "../../../shared/names";
import { bytesText, countText, momentText, timeText } from "../../../shared/units";
import type { Picked } from "./state";

export function isDense(picked: Picked): boolean {
  return (picked.flags & DENSE) !== 0;
}

export function nameOf(names: Names, frame: number): string {
  return frame === 0 ? "several functions" : functionName(names, names.frames.function[frame - 1]!);
}

/** Returns a text like `N calls, busy x of y, mostly f`. */
export function denseText(names: Names, picked: Picked): string {
  const mostly = picked.frame === 0 ? "no dominant function" : `mostly ${nameOf(names, picked.frame)}`;
  const calls = `${countText(picked.calls)} ${picked.calls === 1 ? "call" : "calls"}`;
  return `${calls}, busy ${timeText(picked.busy)} of ${timeText(picked.extent)}, ${mostly}`;
}

/** Returns the outcome of a span, unless it is the usual one. */
export function endText(flags: number): string {
  if (flags & DENSE) return "";
  return [flags & FAILED ? "failed" : "", flags & UNFINISHED ? "has no end" : ""].filter(Boolean).join(", ");
}

/** Returns a span in one sentence. */
export function sentenceOf(names: Names, picked: Picked, thread: string): string {
  if (isDense(picked)) return `${denseText(names, picked)}. Depth ${picked.depth}, ${thread}.`;
  const end = endText(picked.flags);
  const what = `${nameOf(names, picked.frame)}, ${timeText(picked.extent)}, begins at ${momentText(picked.begin, 1)}`;
  return `${what}, depth ${picked.depth}, ${thread}${end ? `, ${end}` : ""}.`;
}

/** Returns the value of a counter: in bytes if its name says so. */
export function counterText(name: string, value: number): string {
  if (/byte|memory|heap|rss/i.test(name)) return bytesText(value);
  return Number.isInteger(value) ? countText(value) : value.toPrecision(4);
}
