// The whole picture of the timeline, and the data that it needs.

import { batch } from "@preact/signals";
import type { FunctionIndex, Head } from "../../../shared/format";
import { timeText } from "../../../shared/units";
import type { Surface } from "../../canvas";
import { head, threads } from "../../state";
import { drawCounter } from "./counters";
import { activityOf, want } from "./data";
import { drawTrack, FONT, type TimelineScene } from "./draw";
import type { DrawingStyle } from "./drawing-style";
import { drawAxis, drawName, drawOverview, drawProcess, drawScale } from "./frame";
import { ABOVE, layoutOf, type Placed, type TimelineLayout, type TrackPlace } from "./layout";
import { opened, type Picked, scroll, type TimeRange, visible } from "./state";

/** The size of the picture. */
export const size = { width: 0, height: 0 };

export function layoutNow(): TimelineLayout {
  return layoutOf(head(), threads.value, opened.value, size.width);
}

export function pixelNsNow(gutter: number): number {
  const { from, to } = visible.value;
  return (to - from) / Math.max(size.width - gutter, 1);
}

export function scrollTo(layout: TimelineLayout, y: number): void {
  scroll.value = Math.max(0, Math.min(y, layout.height - (size.height - ABOVE)));
}

/** Scrolls as little as possible to show a depth of a track. */
export function scrollInto(layout: TimelineLayout, { track, depth }: Picked): void {
  const place = layout.places.find((of): of is TrackPlace => of.kind === "track" && of.track === track);
  if (!place) return;
  const top = place.rowsTop + Math.min(depth, place.rows - 1) * place.rowHeight;
  const height = size.height - ABOVE;
  if (top < scroll.value) scrollTo(layout, top - 8);
  else if (top + place.rowHeight > scroll.value + height) scrollTo(layout, top + place.rowHeight - height + 8);
}

export interface Shown {
  style: DrawingStyle;
  visible: TimeRange;
  scroll: number;
  range: [number, number] | null;
  band: TimeRange | null;
  selected: FunctionIndex | null;
  focus: Picked | null;
}

/** The maximum number of rows for one answer: on two slow cores about 30 ms of the engine's time. */
const MOST = 400_000;

export function drawTimeline(surface: Surface, shown: Shown): void {
  const { context, width, height, colour } = surface;
  Object.assign(size, { width, height });
  const layout = layoutNow();
  const left = layout.gutter;
  const pixelNs = pixelNsNow(left);
  const scene: TimelineScene = { surface, left, top: ABOVE, pixelNs, ...shown };
  const offset = ABOVE - Math.min(shown.scroll, Math.max(0, layout.height - (height - ABOVE)));
  context.fillStyle = colour("page");
  context.fillRect(0, 0, width, height);
  drawAxis(scene);
  const visiblePlaces = layout.places.filter((of) => of.top + of.height + offset > ABOVE && of.top + offset < height);
  context.save();
  context.beginPath();
  context.rect(0, ABOVE, width, height - ABOVE);
  context.clip();
  if (layout.places.length === 0) drawNothing(scene);
  for (const place of visiblePlaces) drawPlace(scene, head(), place, offset);
  shade(scene, shown);
  drawScrollBar(surface, layout, offset);
  context.restore();
  const tracks = layout.places.filter((of): of is TrackPlace => of.kind === "track").map((of) => of.track);
  const range = shown.range && { from: shown.range[0], to: shown.range[1] };
  drawOverview(scene, activityOf(tracks), range);
  drawScale(scene);
  drawBand(scene, shown.band);
  batch(() => {
    for (const place of visiblePlaces)
      if (place.kind === "track") want(place.track, shown.visible, pixelNs, place.rows, MOST);
  });
}

function drawNothing({ surface: { context, colour } }: TimelineScene): void {
  context.font = FONT;
  context.textBaseline = "top";
  context.textAlign = "left";
  context.fillStyle = colour("dim");
  context.fillText("This thread has no events. Select another one above, or all threads.", 12, ABOVE + 14);
}

function drawPlace(scene: TimelineScene, of: Head, place: Placed, offset: number): void {
  const y = place.top + offset;
  const { context, width, height } = scene.surface;
  if (place.kind === "process") drawProcess(scene.surface, of, place, y);
  else if (place.kind === "counter") drawCounter(scene, of, place, y);
  else {
    context.save();
    context.beginPath();
    context.rect(scene.left, ABOVE, width - scene.left, height);
    context.clip();
    drawTrack(scene, place, place.rowsTop + offset);
    context.restore();
    drawName(scene.surface, of, place, y, scene.left);
  }
}

/** Dims the time outside the range. */
function shade({ surface, visible: seen, left, pixelNs }: TimelineScene, { range }: Shown): void {
  if (!range) return;
  const { context, width, height, colour } = surface;
  const from = Math.min(width, Math.max(left, left + (range[0] - seen.from) / pixelNs));
  const to = Math.min(width, Math.max(left, left + (range[1] - seen.from) / pixelNs));
  context.fillStyle = colour("page");
  context.globalAlpha = 0.7;
  context.fillRect(left, ABOVE, from - left, height);
  context.fillRect(to, ABOVE, width - to, height);
  context.globalAlpha = 1;
  context.fillStyle = colour("found");
  if (from > left) context.fillRect(from - 1, ABOVE, 1, height);
  if (to < width) context.fillRect(to, ABOVE, 1, height);
}

/** Draws the range while the user drags it, with its length. */
function drawBand({ surface, visible: seen, left, pixelNs }: TimelineScene, band: TimeRange | null): void {
  if (!band) return;
  const { context, height, colour } = surface;
  const from = left + (band.from - seen.from) / pixelNs;
  const to = left + (band.to - seen.from) / pixelNs;
  context.fillStyle = colour("found");
  context.globalAlpha = 0.18;
  context.fillRect(from, ABOVE - 24, to - from, height);
  context.globalAlpha = 1;
  context.font = FONT;
  context.textBaseline = "top";
  context.textAlign = "center";
  context.fillText(timeText(band.to - band.from), (from + to) / 2, ABOVE + 4);
  context.textAlign = "left";
}

function drawScrollBar({ context, width, height, colour }: Surface, layout: TimelineLayout, offset: number): void {
  const room = height - ABOVE;
  if (layout.height <= room) return;
  const long = Math.max(24, (room * room) / layout.height);
  const at = ((ABOVE - offset) / (layout.height - room)) * (room - long);
  context.fillStyle = colour("dim");
  context.globalAlpha = 0.5;
  context.fillRect(width - 6, ABOVE + at, 4, long);
  context.globalAlpha = 1;
}
