// The mouse, fingers and the wheel on the timeline.

import { chooseRange, head, names, select } from "../../state";
import { stepAt } from "./counters";
import { counterOf, knownOf } from "./data";
import { pickAt } from "./draw";
import { overviewScale, threadName } from "./frame";
import { ABOVE, OVERVIEW, type Placed, placeAt } from "./layout";
import { layoutNow, pixelNsNow, scrollTo, size } from "./scene";
import {
  band,
  fit,
  focus,
  type Hovered,
  hovered,
  look,
  message,
  type Picked,
  pan,
  scroll,
  switchOpened,
  type TimeRange,
  visible,
  wholeTime,
  zoom,
} from "./state";
import { sentenceOf } from "./track-text";

/** The effect of a drag. */
type Drag =
  | { kind: "pan" }
  | { kind: "range"; from: number }
  | { kind: "window"; at: number; before: TimeRange }
  | { kind: "edge"; edge: "from" | "to" }
  | { kind: "draw"; from: number };

interface Press {
  x: number;
  y: number;
  drag: Drag;
  hasMoved: boolean;
}

const pointers = new Map<number, { x: number; y: number }>();
let press: Press | null = null;

function timeAt(x: number): number {
  const { gutter } = layoutNow();
  return visible.value.from + (x - gutter) * pixelNsNow(gutter);
}

function overviewTimeAt(x: number): number {
  const { left, pixelNs } = overviewScale(size.width, layoutNow().gutter);
  return Math.min(Math.max((x - left) * pixelNs, 0), wholeTime().to);
}

function dragAt(x: number, y: number, isRange: boolean): Drag {
  if (y < OVERVIEW) {
    const { left, pixelNs } = overviewScale(size.width, layoutNow().gutter);
    const { from, to } = visible.value;
    const at = overviewTimeAt(x);
    const isWhole = to - from > 0.98 * wholeTime().to;
    if (Math.abs(x - left - from / pixelNs) < 6) return { kind: "edge", edge: "from" };
    if (Math.abs(x - left - to / pixelNs) < 6) return { kind: "edge", edge: "to" };
    if (isWhole || isRange) return { kind: "draw", from: at };
    if (at < from || at > to) look(at - (to - from) / 2, at + (to - from) / 2);
    return { kind: "window", at, before: visible.value };
  }
  return isRange || y < ABOVE ? { kind: "range", from: timeAt(x) } : { kind: "pan" };
}

function follow(drag: Drag, x: number, dx: number, dy: number): void {
  const span = (a: number, b: number): TimeRange => ({ from: Math.min(a, b), to: Math.max(a, b) });
  if (drag.kind === "pan") {
    pan(-dx * pixelNsNow(layoutNow().gutter));
    scrollTo(layoutNow(), scroll.value - dy);
  } else if (drag.kind === "range") {
    const { from, to } = span(drag.from, timeAt(x));
    band.value = { from: Math.max(0, from), to: Math.min(to, wholeTime().to) };
  } else if (drag.kind === "window") {
    const moved = overviewTimeAt(x) - drag.at;
    look(drag.before.from + moved, drag.before.to + moved);
  } else if (drag.kind === "edge") {
    const { from, to } = visible.value;
    const at = overviewTimeAt(x);
    if (drag.edge === "from") look(Math.min(at, to - 50), to);
    else look(from, Math.max(at, from + 50));
  } else {
    const { from, to } = span(drag.from, overviewTimeAt(x));
    look(from, to);
  }
}

/** Zooms and pans with two fingers. The content below them stays below them. */
function pinch(event: PointerEvent): void {
  const others = [...pointers].filter(([id]) => id !== event.pointerId);
  const other = others[0]?.[1];
  const before = pointers.get(event.pointerId);
  if (!other || !before) return;
  const distance = (a: { x: number; y: number }) => Math.max(Math.abs(a.x - other.x), 10);
  const now = { x: event.offsetX, y: event.offsetY };
  zoom(distance(before) / distance(now), timeAt((now.x + other.x) / 2));
  pan(-((now.x - before.x) / 2) * pixelNsNow(layoutNow().gutter));
}

/** Returns the track or counter at a position of the picture, and the span if there is one. */
function hitAt(x: number, y: number): Hovered | null {
  const layout = layoutNow();
  if (y < ABOVE || x < layout.gutter) return null;
  const inTracks = y - ABOVE + scroll.value;
  const place = placeAt(layout, inTracks);
  const time = timeAt(x);
  const slack = 2 * pixelNsNow(layout.gutter);
  if (place?.kind === "counter") {
    const steps = counterOf(place.counter)?.stepsColumns;
    const step = steps ? stepAt(steps.time, time) : -1;
    return step < 0 ? null : { kind: "counter", counter: place.counter, time, value: steps!.value[step]! };
  }
  if (place?.kind !== "track") return null;
  const depth = Math.floor((inTracks - place.rowsTop) / place.rowHeight);
  if (depth === 0) {
    const instant = instantAt(place.track, time, 2 * slack);
    if (instant) return instant;
  }
  const picked = depth >= 0 && depth < place.rows ? pickAt(place.track, time, depth, slack) : null;
  return picked && { kind: "span", picked };
}

function instantAt(track: number, time: number, slack: number): Hovered | null {
  const instants = knownOf(track)?.contents.instantsColumns;
  const row = instants ? instants.time.findIndex((at) => Math.abs(at - time) < slack) : -1;
  if (!instants || row < 0) return null;
  return {
    kind: "instant",
    track,
    time: instants.time[row]!,
    frame: instants.frame[row]!,
    count: instants.count[row]!,
  };
}

/** Moves the focus to a rectangle, and says so. */
export function focusOn(picked: Picked): void {
  focus.value = picked;
  const { thread } = head().timeline!.tracks[picked.track]!;
  message.value = sentenceOf(names(), picked, threadName(head(), thread));
}

function click(x: number, y: number): void {
  const hit = hitAt(x, y);
  if (hit?.kind === "span") {
    focusOn(hit.picked);
    if (hit.picked.frame > 0) select(names().frames.function[hit.picked.frame - 1]!);
    return;
  }
  if (y < ABOVE) return;
  const layout = layoutNow();
  const inTracks = y - ABOVE + scroll.value;
  const place = placeAt(layout, inTracks);
  if (place) clickName(place, x < layout.gutter, inTracks);
}

/** Opens or closes a track by a click on its name, or on the text below its rows. */
function clickName(place: Placed, isLeft: boolean, y: number): void {
  if (place.kind === "process") switchOpened(`p${place.process}`);
  if (place.kind !== "track") return;
  if (place.more && y > place.top + place.height - 22 && !isLeft) switchOpened(`e${place.track}`);
  else if (isLeft || y < place.rowsTop) switchOpened(`c${place.track}`);
}

function cursorAt(x: number, y: number): string {
  if (y < OVERVIEW) return "ew-resize";
  if (y < ABOVE) return "col-resize";
  const layout = layoutNow();
  return x < layout.gutter || hitAt(x, y)?.kind === "span" ? "pointer" : "default";
}

export const pointerEvents = {
  onPointerDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    const { offsetX: x, offsetY: y } = event;
    press = pointers.size > 1 ? null : { x, y, drag: dragAt(x, y, event.shiftKey), hasMoved: false };
    hovered.value = null;
  },
  onPointerMove(event: PointerEvent): void {
    const { offsetX: x, offsetY: y } = event;
    const before = pointers.get(event.pointerId);
    if (!before) {
      const what = hitAt(x, y);
      hovered.value = what && { x: event.clientX, y: event.clientY, what };
      (event.currentTarget as HTMLElement).style.cursor = cursorAt(x, y);
      return;
    }
    if (pointers.size > 1) pinch(event);
    else if (press) {
      press.hasMoved ||= Math.abs(x - press.x) + Math.abs(y - press.y) > 3;
      if (press.hasMoved) follow(press.drag, x, x - before.x, y - before.y);
    }
    pointers.set(event.pointerId, { x, y });
  },
  onPointerUp(event: PointerEvent): void {
    pointers.delete(event.pointerId);
    if (press && !press.hasMoved) click(event.offsetX, event.offsetY);
    if (band.value && band.value.to > band.value.from) chooseRange([band.value.from, band.value.to]);
    band.value = null;
    press = null;
  },
  onPointerCancel(event: PointerEvent): void {
    pointers.delete(event.pointerId);
    band.value = null;
    press = null;
  },
  onPointerLeave(): void {
    hovered.value = null;
  },
  onDblClick(event: MouseEvent): void {
    const hit = hitAt(event.offsetX, event.offsetY);
    if (hit?.kind === "span") fit(hit.picked);
  },
  onWheel(event: WheelEvent): void {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? size.height : 1;
    const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    hovered.value = null;
    if (event.ctrlKey || event.metaKey) {
      zoom(Math.exp(Math.sign(dy) * Math.min(Math.abs(dy), 60) * 0.006), timeAt(event.offsetX));
      return;
    }
    const isSideways = event.shiftKey && dx === 0;
    const across = isSideways ? dy : dx;
    if (across !== 0) pan(across * pixelNsNow(layoutNow().gutter));
    if (!isSideways && dy !== 0) scrollTo(layoutNow(), scroll.value + dy);
  },
};
