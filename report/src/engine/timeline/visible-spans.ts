// The visible part of a track at a scale: spans that are long enough to be visible, and pieces that merge shorter ones.

import type { Block, TimelineInfo, TrackInfo } from "../../shared/format";
import { densePlaces, FAILED, firstRow, spanPlaces, type Tile, type TilePlace, type TileStore } from "./tiles";

/** By begin and depth. */
export interface SpanColumns {
  begin: Float64Array;
  extent: Float64Array;
  depth: Uint16Array;
  /** The frame + 1, or 0. */
  frame: Uint32Array;
  /** Flags of a span, or `DENSE`. */
  flags: Uint8Array;
  /** For pieces: the number of calls in them, and their busy time. */
  calls: Uint32Array;
  busy: Float64Array;
  /** Its position, for requests of details. */
  block: Uint32Array;
  row: Uint32Array;
}

/** A rectangle that merges several spans. */
export const DENSE = 128;

export interface TimeRange {
  from: number;
  to: number;
}

export interface Window extends TimeRange {
  pixelNs: number;
  /** The maximum depth; 1 is the outermost. */
  depthLimit: number;
  /** The approximate maximum number of rows to read. */
  most: number;
}

/** Pieces are up to four times as long as the shortest span of their level: with half a pixel they are two pixels at most. */
const LEAST_PIXELS = 0.5;

/**
 * Returns the level to draw: the coarsest whose pieces look the same as their spans. If that would be far too many rows, as on
 * a very deep track, the next coarser level.
 */
export function levelOf(info: TimelineInfo, track: TrackInfo, window: Window): number {
  const { levels } = info;
  const last = levels.length - 1;
  let level = 0;
  while (level < last && levels[level + 1]! <= LEAST_PIXELS * window.pixelNs) level++;
  while (level < last && expected(info, track, level, window) > window.most) level++;
  return level;
}

function expected(info: TimelineInfo, track: TrackInfo, level: number, { from, to }: Window): number {
  let count = 0;
  for (const place of visiblePlaces(info, track, level, from, to)) {
    const inside = Math.min(place.latest, to) - Math.max(place.earliest, from);
    const whole = place.latest - place.earliest;
    count += whole > 0 ? (place.count * Math.max(inside, 0)) / whole : place.count;
  }
  return count;
}

/** Returns the tiles that overlap a time, of a level and of all above it. */
export function visiblePlaces(
  info: TimelineInfo,
  track: TrackInfo,
  level: number,
  from: number,
  to: number,
): TilePlace[] {
  const places = densePlaces(track, level);
  for (let above = level; above < track.levels.length; above++) places.push(...spanPlaces(info, track, above));
  return places.filter((place) => place.earliest < to && place.latest >= from);
}

/** Visits each row of a tile that overlaps a time, in order. */
export function eachRow(
  tile: Tile,
  { longest }: TilePlace,
  { from, to }: TimeRange,
  visit: (row: number) => void,
): void {
  const { begin, extent } = tile;
  for (let row = longest === Infinity ? 0 : firstRow(tile, from - longest); row < begin.length; row++) {
    if (begin[row]! >= to) return;
    if (begin[row]! + extent[row]! >= from) visit(row);
  }
}

export async function spansOf(
  tiles: TileStore,
  info: TimelineInfo,
  track: TrackInfo,
  window: Window,
): Promise<{ level: number; spanColumns: SpanColumns }> {
  const level = levelOf(info, track, window);
  const rows = new Rows();
  for (const place of visiblePlaces(info, track, level, window.from, window.to)) {
    const tile = await tiles.get(place);
    const pixels = new Map<number, number>();
    eachRow(tile, place, window, (row) => {
      if (tile.depth[row]! < window.depthLimit && isSeen(tile, row, window.pixelNs, pixels)) {
        rows.add(place.block, tile, row);
      }
    });
  }
  return { level, spanColumns: rows.sorted() };
}

/** Returns whether a row ends in another pixel than the previous one at its depth. `pixels` has the last pixel of each depth. */
function isSeen(tile: Tile, row: number, pixelNs: number, pixels: Map<number, number>): boolean {
  const extent = tile.extent[row]!;
  const depth = tile.depth[row]!;
  const pixel = Math.floor((tile.begin[row]! + extent) / pixelNs);
  const isFirst = pixels.get(depth) !== pixel;
  pixels.set(depth, pixel);
  return isFirst || extent >= pixelNs || ((tile.flags?.[row] ?? 0) & FAILED) !== 0;
}

/** Collects rows of tiles. */
class Rows {
  private readonly tiles: { block: Block; tile: Tile }[] = [];
  private readonly tileOf: number[] = [];
  private readonly rowOf: number[] = [];
  private readonly begin: number[] = [];

  add(block: Block, tile: Tile, row: number): void {
    if (this.tiles[this.tiles.length - 1]?.block !== block) this.tiles.push({ block, tile });
    this.tileOf.push(this.tiles.length - 1);
    this.rowOf.push(row);
    this.begin.push(tile.begin[row]!);
  }

  sorted(): SpanColumns {
    const { tiles, tileOf, rowOf, begin } = this;
    const depth = (at: number) => tiles[tileOf[at]!]!.tile.depth[rowOf[at]!]!;
    // An array and not a typed one: its sort is fast for data that is nearly sorted, as the rows of a tile are.
    const order = [...begin.keys()].sort((a, b) => begin[a]! - begin[b]! || depth(a) - depth(b));
    const columns = emptySpanColumns(order.length);
    for (let to = 0; to < order.length; to++) {
      const at = order[to]!;
      const { block, tile } = tiles[tileOf[at]!]!;
      put(columns, to, block, tile, rowOf[at]!);
    }
    return columns;
  }
}

function put(columns: SpanColumns, to: number, block: Block, tile: Tile, row: number): void {
  columns.begin[to] = tile.begin[row]!;
  columns.extent[to] = tile.extent[row]!;
  columns.depth[to] = tile.depth[row]!;
  columns.frame[to] = tile.frame[row]!;
  columns.flags[to] = tile.flags ? tile.flags[row]! : DENSE;
  columns.calls[to] = tile.flags ? 1 : tile.value[row]!;
  columns.busy[to] = tile.busy ? tile.busy[row]! : tile.extent[row]!;
  columns.block[to] = block;
  columns.row[to] = row;
}

export function emptySpanColumns(length: number): SpanColumns {
  return {
    begin: new Float64Array(length),
    extent: new Float64Array(length),
    depth: new Uint16Array(length),
    frame: new Uint32Array(length),
    flags: new Uint8Array(length),
    calls: new Uint32Array(length),
    busy: new Float64Array(length),
    block: new Uint32Array(length),
    row: new Uint32Array(length),
  };
}
