// The state of the timeline: its window, its scroll position, and its focus.

import { batch, computed, signal } from "@preact/signals";
import type { TimeRange } from "../../../engine/timeline/visible-spans";
import { addressed } from "../../address";
import { head } from "../../state";
import type { Opened } from "./layout";

/** A rectangle under the pointer, or with the focus. */
export interface Picked {
  /** The index of its track in `TimelineInfo.tracks`. */
  track: number;
  begin: number;
  extent: number;
  depth: number;
  /** The frame + 1; 0 if it has none. */
  frame: number;
  flags: number;
  calls: number;
  busy: number;
  block: number;
  row: number;
}

export type { TimeRange } from "../../../engine/timeline/visible-spans";

const windowText = addressed("timeline.window", "");
const openedText = addressed("timeline.tracks", "");
/** While it changes, the window is not written to the address: browsers limit the number of such changes. */
const moving = signal<TimeRange | null>(null);
let written: ReturnType<typeof setTimeout> | undefined;

/** The shortest window: nothing shorter can be distinguished. */
const LEAST_NS = 50;

export function wholeTime(): TimeRange {
  return { from: 0, to: Math.max(head().durationNs, LEAST_NS) };
}

/** The visible time. */
export const visible = computed<TimeRange>(() => {
  if (moving.value) return moving.value;
  const [from, to] = windowText.value.split("-").map(Number);
  return from !== undefined && to !== undefined && from < to ? inside(from, to) : wholeTime();
});

/** Returns a window of that length, moved into the recording. */
function inside(from: number, to: number): TimeRange {
  const all = wholeTime();
  const length = Math.min(Math.max(to - from, LEAST_NS), all.to);
  const begin = Math.min(Math.max(from, 0), all.to - length);
  return { from: begin, to: begin + length };
}

/** Shows this time. */
export function look(from: number, to: number): void {
  moving.value = inside(from, to);
  clearTimeout(written);
  written = setTimeout(() => {
    const now = moving.value;
    if (!now) return;
    const all = wholeTime();
    const isAll = now.from <= 0 && now.to >= all.to;
    batch(() => {
      windowText.value = isAll ? "" : `${Math.floor(now.from)}-${Math.ceil(now.to)}`;
      moving.value = null;
    });
  }, 250);
}

/** Zooms by a factor around a moment, which keeps its position. */
export function zoom(factor: number, at?: number): void {
  const { from, to } = visible.value;
  const length = Math.min(Math.max((to - from) * factor, LEAST_NS), wholeTime().to);
  const fixed = at ?? (from + to) / 2;
  const share = (fixed - from) / (to - from);
  look(fixed - share * length, fixed + (1 - share) * length);
}

export function pan(ns: number): void {
  const { from, to } = visible.value;
  look(from + ns, to + ns);
}

export function lookAtAll(): void {
  const { from, to } = wholeTime();
  look(from, to);
}

/** Shows a span with some time around it. */
export function fit({ begin, extent }: { begin: number; extent: number }): void {
  const around = Math.max(extent * 0.05, LEAST_NS / 2);
  look(begin - around, begin + extent + around);
}

/** Moves the window to a span that is not visible, and enlarges it if the span is longer. */
export function bringIntoView({ begin, extent }: { begin: number; extent: number }): void {
  const { from, to } = visible.value;
  const length = to - from;
  if (begin >= from && begin + extent <= to) return;
  const middle = begin + extent / 2;
  if (extent > length) fit({ begin, extent });
  else look(middle - length / 2, middle + length / 2);
}

export const opened = computed<Opened>(() => new Set(openedText.value.split(" ").filter(Boolean)));

export function switchOpened(word: string): void {
  const words = new Set(opened.value);
  if (!words.delete(word)) words.add(word);
  openedText.value = [...words].sort().join(" ");
}

export const scroll = signal(0);
export const focus = signal<Picked | null>(null);
export const hovered = signal<{ x: number; y: number; what: Hovered } | null>(null);
export type Hovered =
  | { kind: "span"; picked: Picked }
  | { kind: "instant"; track: number; time: number; frame: number; count: number }
  | { kind: "counter"; counter: number; time: number; value: number };
/** The range while the user drags it. */
export const band = signal<TimeRange | null>(null);
/** The announcement for screen readers. */
export const message = signal("");
