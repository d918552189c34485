// The style of rectangles: a colour by function, dimmed by a filter or a search. Rectangles with the same style are drawn together.

import { visibleByOrigin, visibleFunctions } from "../../../engine/filter";
import type { SpanColumns } from "../../../engine/timeline/visible-spans";
import { DENSE } from "../../../engine/timeline/visible-spans";
import type { Names } from "../../../shared/names";
import type { Filter } from "../../../shared/selection";
import { functionColours } from "../../colours";
import type { Known } from "./data";

/** The strengths of colours, in the order of drawing: filtered out, then pieces by their busy time, then spans. */
export const STRENGTHS = [0.18, 0.5, 0.7, 0.85, 1] as const;
const SPAN = STRENGTHS.length - 1;

export interface DrawingStyle {
  names: Names;
  filter: Filter;
  /** By function, if there is a search. */
  found: Uint8Array | null;
  isDark: boolean;
  /** A key of the above. */
  key: string;
}

/** The colours, and the colour of each function. The first is that of pieces without a dominant function. */
export interface Palette {
  colours: string[];
  of: Uint16Array;
}

const palettes = new WeakMap<Names, Map<boolean, Palette>>();

export function paletteOf({ names, isDark }: DrawingStyle): Palette {
  const known = palettes.get(names) ?? new Map<boolean, Palette>();
  palettes.set(names, known);
  let palette = known.get(isDark);
  if (!palette) {
    const numbers = new Map<string, number>([[isDark ? "hsl(220 6% 38%)" : "hsl(220 8% 76%)", 0]]);
    const of = Uint16Array.from(functionColours(names, isDark), (colour) => {
      const number = numbers.get(colour) ?? numbers.size;
      numbers.set(colour, number);
      return number;
    });
    palette = { colours: [...numbers.keys()], of };
    known.set(isDark, palette);
  }
  return palette;
}

/** Rows by group: those of group g are `rows` from `starts[g]` to `starts[g + 1]`; g is strength * colours + colour. */
export interface DrawingOrder {
  key: string;
  rows: Uint32Array;
  starts: Uint32Array;
}

export function orderOf(known: Known, style: DrawingStyle): DrawingOrder {
  if (known.order?.key === style.key) return known.order;
  const palette = paletteOf(style);
  const columns = known.contents.spanColumns;
  const count = columns.begin.length;
  const group = new Uint16Array(count);
  const isLeftOut = leftOut(columns, style);
  const { function: functionOf } = style.names.frames;
  const starts = new Uint32Array(STRENGTHS.length * palette.colours.length + 1);
  for (let row = 0; row < count; row++) {
    const frame = columns.frame[row]!;
    const colour = frame === 0 ? 0 : palette.of[functionOf[frame - 1]!]!;
    group[row] = strengthOf(columns, row, isLeftOut[row] === 1) * palette.colours.length + colour;
    starts[group[row]! + 1]!++;
  }
  for (let of = 1; of < starts.length; of++) starts[of]! += starts[of - 1]!;
  const next = starts.slice();
  const rows = new Uint32Array(count);
  for (let row = 0; row < count; row++) rows[next[group[row]!]!++] = row;
  known.order = { key: style.key, rows, starts };
  return known.order;
}

function strengthOf(columns: SpanColumns, row: number, isLeftOut: boolean): number {
  if (isLeftOut) return 0;
  if ((columns.flags[row]! & DENSE) === 0) return SPAN;
  const share = columns.busy[row]! / Math.max(columns.extent[row]!, 1);
  return share < 1 / 3 ? 1 : share < 2 / 3 ? 2 : 3;
}

const seenBy = new WeakMap<Filter, Uint8Array>();

function seenOnce(names: Names, filter: Filter): Uint8Array {
  let seen = seenBy.get(filter);
  if (!seen) {
    seen = visibleFunctions(names, filter);
    seenBy.set(filter, seen);
  }
  return seen;
}

/**
 * Returns by row: 1 for spans that the filter hides or the search does not find. Callers come before their callees, and
 * determine whose code a callee is.
 */
function leftOut(columns: SpanColumns, { names, filter, found }: DrawingStyle): Uint8Array {
  const seen = seenOnce(names, filter);
  const { origin } = names.functions;
  const { function: functionOf } = names.frames;
  const isLibrary: boolean[] = [];
  const out = new Uint8Array(columns.begin.length);
  for (let row = 0; row < out.length; row++) {
    const depth = columns.depth[row]!;
    const above = depth > 0 && (isLibrary[depth - 1] ?? false);
    const frame = columns.frame[row]!;
    if (frame === 0) {
      isLibrary[depth] = above;
      out[row] = found ? 1 : 0;
      continue;
    }
    const of = functionOf[frame - 1]!;
    const [shows, below] = visibleByOrigin(origin[of]!, above, filter.internals);
    isLibrary[depth] = below;
    out[row] = !shows || seen[of] !== 1 || (found && found[of] !== 1) ? 1 : 0;
  }
  return out;
}
