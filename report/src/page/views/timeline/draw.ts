// Draws the tracks of the timeline: rectangles, their names, marks.

import { FAILED, UNFINISHED } from "../../../engine/timeline/tiles";
import { DENSE, type SpanColumns } from "../../../engine/timeline/visible-spans";
import type { FunctionIndex } from "../../../shared/format";
import { functionName } from "../../../shared/names";
import { fitted, type Surface } from "../../canvas";
import { type Known, knownOf } from "./data";
import { type DrawingStyle, orderOf, paletteOf, STRENGTHS } from "./drawing-style";
import type { TrackPlace } from "./layout";
import type { Picked, TimeRange } from "./state";

export const FONT = '11px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

/** The content of the picture, and its position. */
export interface TimelineScene {
  surface: Surface;
  style: DrawingStyle;
  visible: TimeRange;
  /** The left edge of the time, and the top edge of the tracks. */
  left: number;
  top: number;
  pixelNs: number;
  selected: FunctionIndex | null;
  focus: Picked | null;
}

/** Draws a track with its top edge at `y` of the surface. */
export function drawTrack(scene: TimelineScene, place: TrackPlace, y: number): void {
  const known = knownOf(place.track);
  if (!known) return;
  fillRows(scene, known, place, y);
  if (!place.isClosed) writeNames(scene, known, place, y);
  markRows(scene, known, place, y);
  markInstants(scene, known, place, y);
}

/** Returns the visible rows of a track: no others are drawn. */
function visibleDepths({ surface, top }: TimelineScene, place: TrackPlace, y: number): [number, number] {
  const first = Math.max(0, Math.floor((top - y) / place.rowHeight));
  const last = Math.min(place.rows, Math.ceil((surface.height - y) / place.rowHeight));
  return [first, last];
}

/**
 * Fills rectangles, on whole pixels. Adjacent narrow ones with the same style are merged, which are most of them on a busy
 * track: this keeps a frame short.
 */
function fillRows(scene: TimelineScene, known: Known, place: TrackPlace, y: number): void {
  const { style, visible, left, pixelNs } = scene;
  const { context, width } = scene.surface;
  const { begin, extent, depth } = known.contents.spanColumns;
  const { rows, starts } = orderOf(known, style);
  const { colours } = paletteOf(style);
  const [first, last] = visibleDepths(scene, place, y);
  const height = place.rowHeight - (place.isClosed ? 0 : 1);
  const until = visible.from + (width - left) * pixelNs;
  const runs = new Runs(Math.max(place.rows, 1), (of, from, to) =>
    context.fillRect(from, y + of * place.rowHeight, to - from, height),
  );
  for (let group = 0; group + 1 < starts.length; group++) {
    if (starts[group] === starts[group + 1]) continue;
    context.globalAlpha = STRENGTHS[Math.floor(group / colours.length)]!;
    context.fillStyle = colours[group % colours.length]!;
    for (let at = starts[group]!; at < starts[group + 1]!; at++) {
      const row = rows[at]!;
      const of = depth[row]!;
      const from = begin[row]!;
      const to = from + extent[row]!;
      if (of < first || of >= last || to < visible.from || from > until) continue;
      const x = Math.max(left, Math.round(left + (from - visible.from) / pixelNs));
      const end = Math.min(width, Math.round(left + (to - visible.from) / pixelNs));
      runs.add(of, x, Math.max(end, x + 1));
    }
    runs.finish();
  }
  context.globalAlpha = 1;
}

/** Rectangles of at least this width have an edge at their end. */
const NARROW = 3;

/** Adjacent narrow rectangles of one depth, merged. */
class Runs {
  private readonly from: Int32Array;
  private readonly to: Int32Array;

  constructor(
    depths: number,
    private readonly fill: (depth: number, from: number, to: number) => void,
  ) {
    this.from = new Int32Array(depths);
    this.to = new Int32Array(depths).fill(-1);
  }

  add(depth: number, from: number, to: number): void {
    if (to - from > NARROW) {
      this.fill(depth, from, to - 1);
    } else if (from <= this.to[depth]!) {
      this.to[depth] = Math.max(to, this.to[depth]!);
    } else {
      if (this.to[depth]! >= 0) this.fill(depth, this.from[depth]!, this.to[depth]!);
      this.from[depth] = from;
      this.to[depth] = to;
    }
  }

  finish(): void {
    for (let depth = 0; depth < this.to.length; depth++) {
      if (this.to[depth]! >= 0) this.fill(depth, this.from[depth]!, this.to[depth]!);
      this.to[depth] = -1;
    }
  }
}

const LEAST_NAME = 26;

function writeNames(scene: TimelineScene, known: Known, place: TrackPlace, y: number): void {
  const { style, visible, left, pixelNs } = scene;
  const { context, width } = scene.surface;
  const { begin, extent, depth, frame } = known.contents.spanColumns;
  const { names } = style;
  const [first, last] = visibleDepths(scene, place, y);
  const least = LEAST_NAME * pixelNs;
  context.font = FONT;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillStyle = scene.surface.colour("text");
  for (let row = 0; row < begin.length; row++) {
    if (extent[row]! < least || frame[row] === 0) continue;
    const of = depth[row]!;
    if (of < first || of >= last) continue;
    const x = Math.max(left, left + (begin[row]! - visible.from) / pixelNs);
    const wide = Math.min(width, left + (begin[row]! + extent[row]! - visible.from) / pixelNs) - x;
    if (wide < LEAST_NAME) continue;
    const text = fitted(context, functionName(names, names.frames.function[frame[row]! - 1]!), wide - 6);
    if (text) context.fillText(text, x + 3, y + (of + 0.5) * place.rowHeight);
  }
}

/** Edges: of failed spans, of spans without an end, of those of the selected function, and of the focus. */
function markRows(scene: TimelineScene, known: Known, place: TrackPlace, y: number): void {
  const { selected, focus, style } = scene;
  const columns = known.contents.spanColumns;
  const { function: functionOf } = style.names.frames;
  const [first, last] = visibleDepths(scene, place, y);
  const focused = focus?.track === place.track ? focus : null;
  for (let row = 0; row < columns.begin.length; row++) {
    const flags = columns.flags[row]! & (FAILED | UNFINISHED);
    const frame = columns.frame[row]!;
    const isSelected = selected !== null && frame > 0 && functionOf[frame - 1] === selected;
    const hasFocus = focused !== null && isSame(columns, row, focused);
    if (flags === 0 && !isSelected && !hasFocus) continue;
    const of = columns.depth[row]!;
    if (of >= first && of < last) {
      markRow(scene, rectangle(scene, columns, row, place, y), { flags, isSelected, hasFocus });
    }
  }
}

function isSame(columns: SpanColumns, row: number, picked: Picked): boolean {
  return (
    columns.begin[row] === picked.begin && columns.depth[row] === picked.depth && columns.extent[row] === picked.extent
  );
}

interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

function rectangle(scene: TimelineScene, columns: SpanColumns, row: number, place: TrackPlace, y: number): Rectangle {
  const { visible, left, pixelNs, surface } = scene;
  const from = left + (columns.begin[row]! - visible.from) / pixelNs;
  const to = from + columns.extent[row]! / pixelNs;
  const x = Math.max(from, left - 4);
  return {
    x,
    y: y + columns.depth[row]! * place.rowHeight,
    width: Math.max(1, Math.min(to, surface.width + 4) - x),
    height: place.rowHeight - 1,
  };
}

interface RowMarks {
  flags: number;
  isSelected: boolean;
  hasFocus: boolean;
}

function markRow({ surface, left }: TimelineScene, of: Rectangle, { flags, isSelected, hasFocus }: RowMarks): void {
  const { context, width } = surface;
  if (of.x + of.width < left || of.x > width) return;
  if (flags & FAILED) {
    context.fillStyle = surface.colour("more");
    context.fillRect(of.x, of.y, Math.min(3, of.width), of.height);
    context.fillRect(of.x, of.y + of.height - 2, of.width, 2);
  }
  if (flags & UNFINISHED && of.width > 8) {
    context.fillStyle = surface.colour("page");
    context.beginPath();
    const right = of.x + of.width + 1;
    for (let tooth = 0; tooth < 3; tooth++) {
      const at = of.y + (tooth * of.height) / 3;
      context.moveTo(right, at);
      context.lineTo(right - 5, at + of.height / 6);
      context.lineTo(right, at + of.height / 3);
    }
    context.fill();
  }
  if (!isSelected && !hasFocus) return;
  context.strokeStyle = surface.colour(hasFocus ? "text" : "accent");
  context.lineWidth = 2;
  if (of.width < 4) {
    context.fillStyle = context.strokeStyle;
    context.fillRect(of.x, of.y, Math.max(of.width, 1.5), of.height);
  } else context.strokeRect(of.x + 1, of.y + 1, of.width - 2, of.height - 2);
}

function markInstants(
  { surface, visible, left, pixelNs }: TimelineScene,
  known: Known,
  place: TrackPlace,
  y: number,
): void {
  const { context, width } = surface;
  const { time } = known.contents.instantsColumns;
  context.fillStyle = surface.colour("found");
  for (let row = 0; row < time.length; row++) {
    const x = left + (time[row]! - visible.from) / pixelNs;
    if (x < left || x > width) continue;
    context.beginPath();
    context.moveTo(x - 4, y);
    context.lineTo(x + 4, y);
    context.lineTo(x, y + Math.min(8, place.rowHeight * place.rows));
    context.fill();
  }
}

/** Returns the rectangle at a moment and a depth, or the nearest one within a distance. */
export function pickAt(track: number, time: number, depth: number, slack: number): Picked | null {
  const known = knownOf(track);
  if (!known) return null;
  const columns = known.contents.spanColumns;
  let best = -1;
  let bestAway = slack;
  for (let row = 0; row < columns.begin.length; row++) {
    if (columns.depth[row] !== depth) continue;
    const begin = columns.begin[row]!;
    const away = Math.max(begin - time, time - begin - columns.extent[row]!, 0);
    // Spans come before pieces, which may extend below them.
    const isBetter = away < bestAway || (away === bestAway && (best < 0 || (columns.flags[best]! & DENSE) !== 0));
    if (isBetter) {
      best = row;
      bestAway = away;
    }
  }
  return best < 0 ? null : pickedAt(track, columns, best);
}

export function pickedAt(track: number, columns: SpanColumns, row: number): Picked {
  return {
    track,
    begin: columns.begin[row]!,
    extent: columns.extent[row]!,
    depth: columns.depth[row]!,
    frame: columns.frame[row]!,
    flags: columns.flags[row]!,
    calls: columns.calls[row]!,
    busy: columns.busy[row]!,
    block: columns.block[row]!,
    row: columns.row[row]!,
  };
}
