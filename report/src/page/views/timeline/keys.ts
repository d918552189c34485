// The keys of the timeline.

import type { FoundSpan } from "../../../engine/timeline/search";
import { query } from "../../engine";
import { chooseRange, names, select, selected } from "../../state";
import { knownOf } from "./data";
import { pickAt, pickedAt } from "./draw";
import type { TrackPlace } from "./layout";
import { focusOn } from "./pointer";
import { layoutNow, scrollInto, scrollTo, size } from "./scene";
import {
  bringIntoView,
  fit,
  focus,
  hovered,
  lookAtAll,
  message,
  type Picked,
  pan,
  scroll,
  switchOpened,
  visible,
  zoom,
} from "./state";

export function tracksShown(): number[] {
  return shownPlaces().map((place) => place.track);
}

function shownPlaces(): TrackPlace[] {
  return layoutNow().places.filter((place): place is TrackPlace => place.kind === "track");
}

function panBy(share: number): void {
  const { from, to } = visible.value;
  pan((to - from) * share);
}

/** Returns the time at which keys move. */
function momentNow(): number {
  const { from, to } = visible.value;
  const at = focus.value;
  if (!at) return (from + to) / 2;
  const [begin, end] = [Math.max(at.begin, from), Math.min(at.begin + at.extent, to)];
  return begin <= end ? (begin + end) / 2 : (from + to) / 2;
}

/** Moves the focus up or down by one depth, and to the next track after the last depth. */
function moveDepth(by: 1 | -1): void {
  const places = shownPlaces();
  const { from, to } = visible.value;
  const at = focus.value;
  let place = at ? places.findIndex((of) => of.track === at.track) : 0;
  let depth = at ? at.depth + by : 0;
  const moment = momentNow();
  while (place >= 0 && place < places.length) {
    const { track, rows } = places[place]!;
    const isThere = depth >= 0 && depth < rows;
    const picked = isThere ? pickAt(track, moment, depth, at?.track === track ? 0 : to - from) : null;
    if (picked) {
      moveTo(picked);
      return;
    }
    place += by;
    const next = places[place];
    if (!next) return;
    depth = by > 0 ? 0 : deepestAt(next, moment);
  }
}

function deepestAt({ track, rows }: TrackPlace, moment: number): number {
  for (let depth = rows - 1; depth > 0; depth--) if (pickAt(track, moment, depth, 0)) return depth;
  return 0;
}

/** Moves the focus to the next or the previous rectangle of the same depth. */
function moveAlong(by: 1 | -1): void {
  const at = focus.value;
  const columns = at && knownOf(at.track)?.contents.spanColumns;
  if (!at || !columns) {
    moveDepth(1);
    return;
  }
  let best = -1;
  for (let row = 0; row < columns.begin.length; row++) {
    if (columns.depth[row] !== at.depth) continue;
    if (by > 0 && columns.begin[row]! > at.begin) {
      best = row;
      break;
    }
    if (by < 0 && columns.begin[row]! < at.begin) best = row;
  }
  if (best >= 0) moveTo(pickedAt(at.track, columns, best));
}

export function moveTo(picked: Picked): void {
  focusOn(picked);
  const { from, to } = visible.value;
  if (picked.begin >= to || picked.begin + picked.extent <= from) bringIntoView(picked);
  scrollInto(layoutNow(), picked);
}

/** Returns a span that the engine found, as the focus. */
export function pickedOf(found: FoundSpan): Picked {
  return { ...found, frame: found.frame + 1, calls: 1, busy: found.extent };
}

/** Goes to the next or the previous span of the selected function. */
export async function findNext(direction: 1 | -1): Promise<void> {
  const of = selected.value;
  if (of === null) {
    message.value = "Select a function first: click on one, or press Enter on the focused one.";
    return;
  }
  const at = focus.value;
  const isOnIt = at && at.frame > 0 && names().frames.function[at.frame - 1] === of;
  const { from, to } = visible.value;
  const start = direction > 0 ? { time: from, track: -1, depth: -1 } : { time: to, track: Infinity, depth: 0 };
  const cursor = isOnIt ? { time: at.begin, track: at.track, depth: at.depth } : start;
  message.value = "Searching…";
  const found = await query("timelineNext", tracksShown(), of, cursor, direction);
  if (found) {
    bringIntoView(found);
    moveTo(pickedOf(found));
  } else message.value = direction > 0 ? "There is no later call." : "There is no earlier call.";
}

export function rangeOfWindow(): void {
  const { from, to } = visible.value;
  chooseRange([from, to]);
}

export function fitFocus(): void {
  if (focus.value) fit(focus.value);
}

function selectFocus(): void {
  const at = focus.value;
  if (at && at.frame > 0) select(names().frames.function[at.frame - 1]!);
}

function switchTrack(): void {
  const track = focus.value?.track ?? tracksShown()[0];
  if (track !== undefined) switchOpened(`c${track}`);
}

const KEYS: Record<string, () => void> = {
  w: () => zoom(1 / 1.5),
  s: () => zoom(1.5),
  "+": () => zoom(1 / 1.5),
  "=": () => zoom(1 / 1.5),
  "-": () => zoom(1.5),
  a: () => panBy(-0.2),
  d: () => panBy(0.2),
  ArrowLeft: () => panBy(-0.2),
  ArrowRight: () => panBy(0.2),
  "shift+ArrowLeft": () => moveAlong(-1),
  "shift+ArrowRight": () => moveAlong(1),
  ArrowUp: () => moveDepth(-1),
  ArrowDown: () => moveDepth(1),
  PageUp: () => scrollTo(layoutNow(), scroll.value - size.height / 2),
  PageDown: () => scrollTo(layoutNow(), scroll.value + size.height / 2),
  f: fitFocus,
  "0": lookAtAll,
  Home: lookAtAll,
  m: rangeOfWindow,
  n: () => void findNext(1),
  p: () => void findNext(-1),
  c: switchTrack,
  Enter: selectFocus,
};

export function onTimelineKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && focus.value) {
    focus.value = null;
    message.value = "";
    event.preventDefault();
    return;
  }
  const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const key = KEYS[event.shiftKey && name.startsWith("Arrow") ? `shift+${name}` : name];
  if (!key) return;
  hovered.value = null;
  key();
  event.preventDefault();
}
