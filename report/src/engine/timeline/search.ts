// Searches the tiles for spans: the next one of a function, the longest ones of a time.

import type { FunctionIndex, TimelineInfo, TrackInfo } from "../../shared/format";
import { spanPlaces, type Tile, type TilePlace, type TileStore } from "./tiles";
import { eachRow, type TimeRange } from "./visible-spans";

/** A span, and its location. */
export interface FoundSpan {
  /** The index of its track. */
  track: number;
  begin: number;
  extent: number;
  depth: number;
  frame: number;
  flags: number;
  block: number;
  row: number;
}

export interface Searched {
  tiles: TileStore;
  info: TimelineInfo;
  /** Indexes of tracks. */
  tracks: number[];
  /** Whether the answer is still needed. */
  isWanted(): boolean;
}

function found(track: number, { block }: TilePlace, tile: Tile, row: number): FoundSpan {
  return {
    track,
    begin: tile.begin[row]!,
    extent: tile.extent[row]!,
    depth: tile.depth[row]!,
    frame: tile.frame[row]! - 1,
    flags: tile.flags![row]!,
    block,
    row,
  };
}

/** Where a search continues: after (or before) a start, and at that start after a depth and a track. */
export interface Cursor {
  time: number;
  track: number;
  depth: number;
}

/** Returns whether a is before b: by begin, then by track, then by depth. */
function isBefore(a: Cursor, b: Cursor): boolean {
  if (a.time !== b.time) return a.time < b.time;
  return a.track !== b.track ? a.track < b.track : a.depth < b.depth;
}

/** Returns the next or previous span of a function; `null` if there is none. */
export async function nextOf(
  { tiles, info, tracks, isWanted }: Searched,
  isOf: (frame: number) => boolean,
  cursor: Cursor,
  direction: 1 | -1,
): Promise<FoundSpan | null> {
  const isNearer = (a: Cursor, b: Cursor) => (direction > 0 ? isBefore(a, b) : isBefore(b, a));
  let best: FoundSpan | null = null;
  let bestCursor: Cursor | null = null;
  for (const { track, place } of inOrder(info, tracks, cursor.time, direction)) {
    if (bestCursor && (direction > 0 ? place.earliest > bestCursor.time : place.latest < bestCursor.time)) continue;
    const tile = await tiles.get(place);
    if (!isWanted()) return null;
    for (let row = 0; row < tile.begin.length; row++) {
      if (!isOf(tile.frame[row]! - 1)) continue;
      const here = { time: tile.begin[row]!, track, depth: tile.depth[row]! };
      if (!isNearer(cursor, here) || (bestCursor && !isNearer(here, bestCursor))) continue;
      best = found(track, place, tile, row);
      bestCursor = here;
    }
  }
  return best;
}

/** Returns the tiles that may contain it, the nearest first. */
function inOrder(info: TimelineInfo, tracks: number[], time: number, direction: 1 | -1) {
  const places: { track: number; place: TilePlace }[] = [];
  for (const track of tracks) {
    for (const level of info.levels.keys()) {
      for (const place of spanPlaces(info, info.tracks[track]!, level)) {
        if (direction > 0 ? place.latest >= time : place.earliest <= time) places.push({ track, place });
      }
    }
  }
  return places.sort((a, b) => (direction > 0 ? a.place.earliest - b.place.earliest : b.place.latest - a.place.latest));
}

/** Returns the longest spans that begin or end in a time. */
export async function longestIn(
  searched: Searched,
  span: TimeRange,
  count: number,
  isShown: (of: FunctionIndex) => boolean,
): Promise<FoundSpan[]> {
  const { tiles, info, tracks, isWanted } = searched;
  let best: { seen: number; span: FoundSpan }[] = [];
  let least = 0;
  const keepMost = () => {
    best = best.sort((a, b) => b.seen - a.seen).slice(0, count);
    least = best[count - 1]?.seen ?? 0;
  };
  for (let level = info.levels.length - 1; level >= 0; level--) {
    if ((info.levels[level + 1] ?? Infinity) <= least) break;
    for (const track of tracks) {
      for (const place of spanPlaces(info, info.tracks[track]!, level)) {
        if (place.earliest >= span.to || place.latest < span.from) continue;
        const tile = await tiles.get(place);
        if (!isWanted()) return [];
        eachRow(tile, place, span, (row) => {
          const seen = seenOf(tile, row, span);
          if (seen <= least || !isShown(tile.frame[row]! - 1)) return;
          best.push({ seen, span: found(track, place, tile, row) });
          if (best.length >= 16 * count) keepMost();
        });
      }
    }
    keepMost();
  }
  return best.map((of) => of.span);
}

/** Returns the visible duration of a span; 0 if it covers the whole time. */
function seenOf(tile: Tile, row: number, { from, to }: TimeRange): number {
  const begin = tile.begin[row]!;
  const end = begin + tile.extent[row]!;
  return begin < from && end > to ? 0 : Math.min(end, to) - Math.max(begin, from);
}

/** Returns the spans of one track that are open during the whole time, the outermost first. */
export async function aroundOf(
  tiles: TileStore,
  info: TimelineInfo,
  track: TrackInfo,
  span: TimeRange,
): Promise<number[]> {
  const frames: number[] = [];
  for (let level = info.levels.length - 1; level >= 0; level--) {
    if ((info.levels[level + 1] ?? Infinity) <= span.to - span.from) break;
    for (const place of spanPlaces(info, track, level)) {
      if (place.earliest >= span.from || place.latest <= span.to) continue;
      const tile = await tiles.get(place);
      eachRow(tile, place, span, (row) => {
        const begin = tile.begin[row]!;
        if (begin < span.from && begin + tile.extent[row]! > span.to) frames[tile.depth[row]!] = tile.frame[row]! - 1;
      });
    }
  }
  return frames.filter((frame) => frame !== undefined);
}
