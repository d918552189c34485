// The frame of the tracks: the strip with the whole time, the axis, and names.

import type { Head, ThreadIndex } from "../../../shared/format";
import { countText, momentText, timeText } from "../../../shared/units";
import type { Surface } from "../../canvas";
import { ticksOf } from "./axis";
import { FONT, type TimelineScene } from "./draw";
import { ABOVE, AXIS, OVERVIEW, type ProcessPlace, type TrackPlace } from "./layout";
import { type TimeRange, wholeTime } from "./state";

/** Returns the scale of the strip, from its left to its right edge. */
export function overviewScale(width: number, gutter: number): { left: number; pixelNs: number } {
  const left = Math.max(gutter, 8);
  return { left, pixelNs: wholeTime().to / Math.max(width - left - 8, 1) };
}

/** Draws the whole time with its activity, and the visible part of it. */
export function drawOverview(
  { surface, visible, left: gutter }: TimelineScene,
  open: Float64Array | null,
  range: TimeRange | null,
) {
  const { context, width, colour } = surface;
  const { left, pixelNs } = overviewScale(width, gutter);
  context.fillStyle = colour("sunken");
  context.fillRect(0, 0, width, OVERVIEW);
  if (open) {
    const most = open.reduce((a, b) => Math.max(a, b), 0) || 1;
    const wide = (width - left - 8) / open.length;
    context.fillStyle = colour("native");
    context.globalAlpha = 0.75;
    for (let piece = 0; piece < open.length; piece++) {
      const high = (open[piece]! / most) * (OVERVIEW - 10);
      if (high > 0) context.fillRect(left + piece * wide, OVERVIEW - 2 - high, Math.max(wide, 1), high);
    }
    context.globalAlpha = 1;
  }
  if (range) {
    context.fillStyle = colour("found");
    context.fillRect(left + range.from / pixelNs, OVERVIEW - 3, Math.max(2, (range.to - range.from) / pixelNs), 3);
  }
  const from = left + visible.from / pixelNs;
  const to = Math.max(from + 2, left + visible.to / pixelNs);
  context.fillStyle = colour("page");
  context.globalAlpha = 0.5;
  context.fillRect(gutter, 0, from - gutter, OVERVIEW);
  context.fillRect(to, 0, width - to, OVERVIEW);
  context.globalAlpha = 1;
  context.strokeStyle = colour("accent");
  context.lineWidth = 1.5;
  context.strokeRect(from, 1, to - from, OVERVIEW - 2);
  context.fillStyle = colour("accent");
  for (const x of [from, to]) context.fillRect(x - 2, OVERVIEW / 2 - 8, 4, 16);
  if (gutter > 0) {
    context.font = FONT;
    context.textBaseline = "middle";
    context.fillStyle = colour("dim");
    context.fillText(`All: ${timeText(wholeTime().to)}`, 8, OVERVIEW / 2);
  }
}

/** Times, with lines down through the tracks. */
export function drawAxis({ surface, visible, left, pixelNs }: TimelineScene): void {
  const { context, width, height, colour } = surface;
  context.fillStyle = colour("raised");
  context.fillRect(0, OVERVIEW, width, AXIS);
  context.font = FONT;
  const letter = context.measureText("0").width;
  const sample = momentText(visible.to, (visible.to - visible.from) / 50, visible.to);
  const { step, times } = ticksOf(visible.from, visible.to, (width - left) / (sample.length * letter + 24));
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const time of times) {
    const x = Math.round(left + (time - visible.from) / pixelNs) + 0.5;
    context.fillStyle = colour("line");
    context.fillRect(x, OVERVIEW + AXIS - 6, 1, 6);
    context.globalAlpha = 0.5;
    context.fillRect(x, ABOVE, 1, height - ABOVE);
    context.globalAlpha = 1;
    context.fillStyle = colour("dim");
    context.fillText(momentText(time, step, visible.to), x + 4, OVERVIEW + AXIS / 2);
  }
  context.fillStyle = colour("line");
  context.fillRect(0, OVERVIEW, width, 1);
  context.fillRect(0, ABOVE - 1, width, 1);
}

/** Draws the length of the window, at the left of the axis. */
export function drawScale({ surface, visible, left }: TimelineScene): void {
  if (left === 0) return;
  const { context, colour } = surface;
  context.fillStyle = colour("raised");
  context.fillRect(0, OVERVIEW + 1, left - 1, AXIS - 2);
  context.fillStyle = colour("text");
  context.font = FONT;
  context.textBaseline = "middle";
  context.fillText(`${timeText(visible.to - visible.from)} visible`, 8, OVERVIEW + AXIS / 2);
}

export function threadName(head: Head, thread: ThreadIndex): string {
  const { name, tid } = head.threads[thread] ?? { name: "", tid: 0 };
  return name ? `${name} (${tid})` : `thread ${tid}`;
}

/** Draws the name of a track, on its left or above it. */
export function drawName(surface: Surface, head: Head, place: TrackPlace, y: number, gutter: number): void {
  const { context, width, colour } = surface;
  const info = head.timeline!.tracks[place.track]!;
  context.fillStyle = colour("page");
  if (gutter > 0) context.fillRect(0, y, gutter - 1, place.height);
  context.textBaseline = "top";
  context.textAlign = "left";
  context.font = `600 ${FONT}`;
  context.fillStyle = colour("text");
  const room = (gutter > 0 ? gutter : width) - 24;
  context.fillText(cut(context, threadName(head, info.thread), room), 20, y + 3);
  context.font = FONT;
  context.fillStyle = colour("dim");
  context.fillText(place.isClosed ? "▸" : "▾", 6, y + 3);
  const isHigh = gutter > 0 && place.height > 38;
  if (isHigh) context.fillText(cut(context, `${countText(info.spans)} spans, ${info.depth} deep`, room), 20, y + 18);
  if (place.more) {
    const text = place.more === "more" ? `+ ${countText(info.depth - place.rows)} deeper rows` : "− fewer rows";
    context.fillStyle = colour("accent");
    context.fillText(text, gutter + 6, y + place.height - 18);
  }
  context.fillStyle = colour("line");
  context.fillRect(0, y + place.height - 2, width, 1);
}

export function drawProcess(surface: Surface, head: Head, place: ProcessPlace, y: number): void {
  const { context, width, colour } = surface;
  const { pid, title } = head.processes[place.process]!;
  context.fillStyle = colour("raised");
  context.fillRect(0, y, width, place.height - 1);
  context.font = `600 ${FONT}`;
  context.textBaseline = "middle";
  context.fillStyle = colour("text");
  const text = `${place.isClosed ? "▸" : "▾"} ${title || "process"} (${pid})`;
  context.fillText(cut(context, text, width - 12), 6, y + place.height / 2);
}

function cut(context: CanvasRenderingContext2D, text: string, room: number): string {
  const most = Math.floor(room / context.measureText("m").width);
  return text.length <= most ? text : `${text.slice(0, Math.max(most - 1, 1))}…`;
}
