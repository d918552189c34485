// Decoded tiles of the timeline. `shared/format.ts` describes their content.

import type { Block, Tiles, TimelineInfo, TrackInfo } from "../../shared/format";
import { Columns } from "../decode";

/** Spans, or pieces that merge several spans, by begin and depth. */
export interface Tile {
  begin: Float64Array;
  /** The duration of a span, or the extent of a piece. */
  extent: Float64Array;
  depth: Uint32Array;
  /** The frame + 1; 0 for a piece without a dominant frame. */
  frame: Uint32Array;
  /** `SPAN_FLAGS`; empty for pieces. */
  flags: Uint32Array | null;
  /** For a span, the index of its details in `details` + 1; for a piece, the number of calls in it. */
  value: Uint32Array;
  /** The busy time of a piece. Empty for spans. */
  busy: Float64Array | null;
  /** JSON. Empty for pieces. */
  details: Uint8Array | null;
}

export const UNFINISHED = 1;
export const FAILED = 2;
/** It was open before the recording began: its call was not recorded. */
export const FOUND_OPEN = 4;

/** The location of a tile, and limits of its content. */
export interface TilePlace {
  block: Block;
  earliest: number;
  latest: number;
  count: number;
  isDense: boolean;
  /** The longest duration of a row: no row that overlaps a time begins earlier before it. */
  longest: number;
}

/** Returns the tiles with the spans of a level, in the order of time. */
export function spanPlaces(info: TimelineInfo, track: TrackInfo, level: number): TilePlace[] {
  return placesOf(track.levels[level], false, info.levels[level + 1] ?? Infinity);
}

/** Returns the tiles with everything shorter than a level. */
export function densePlaces(track: TrackInfo, level: number): TilePlace[] {
  return placesOf(track.dense[level], true, Infinity);
}

function placesOf(tiles: Tiles | undefined, isDense: boolean, longest: number): TilePlace[] {
  const places: TilePlace[] = [];
  for (let at = 0; at + 3 < (tiles?.length ?? 0); at += 4) {
    const [block, earliest, latest, count] = tiles!.slice(at, at + 4) as [number, number, number, number];
    places.push({ block, earliest, latest, count, isDense, longest });
  }
  return places;
}

export function decodeTile(bytes: Uint8Array, { earliest, isDense }: TilePlace): Tile {
  const columns = new Columns(bytes);
  const begin = columns.rising(earliest);
  const extent = columns.plain();
  const depth = columns.small();
  const frame = columns.small();
  if (isDense) {
    return { begin, extent, depth, frame, flags: null, value: columns.small(), busy: columns.plain(), details: null };
  }
  for (let row = 0; row < frame.length; row++) frame[row]!++;
  const flags = columns.small();
  const value = columns.small();
  return { begin, extent, depth, frame, flags, value, busy: null, details: columns.rest() };
}

/** Returns the first row that begins at `time` or later. */
export function firstRow(tile: Tile, time: number): number {
  const { begin } = tile;
  let low = 0;
  let high = begin.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (begin[middle]! < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the details of a row. */
export function detailOf(tile: Tile, row: number): Record<string, unknown> {
  const place = tile.value[row]!;
  if (!tile.details || place === 0) return {};
  const all = JSON.parse(new TextDecoder().decode(tile.details)) as Record<string, unknown>[];
  return all[place - 1] ?? {};
}

const BYTES_PER_ROW = 32;

/** Decodes tiles on request, and keeps the most recently used ones, up to a number of bytes. */
export class TileStore {
  private readonly kept = new Map<Block, { tile: Promise<Tile>; bytes: number }>();
  private bytes = 0;

  constructor(
    private readonly source: { bytes(block: Block): Promise<Uint8Array> },
    private readonly most = 96 * 2 ** 20,
  ) {}

  get(place: TilePlace): Promise<Tile> {
    const { block } = place;
    const known = this.kept.get(block);
    if (known) {
      this.kept.delete(block);
      this.kept.set(block, known);
      return known.tile;
    }
    const tile = this.source.bytes(block).then((bytes) => decodeTile(bytes, place));
    const bytes = place.count * BYTES_PER_ROW;
    this.kept.set(block, { tile, bytes });
    this.bytes += bytes;
    tile.catch(() => this.drop(block));
    this.shrink();
    return tile;
  }

  /** Returns the size of the cached tiles, in bytes. */
  get size(): number {
    return this.bytes;
  }

  private shrink(): void {
    for (const block of this.kept.keys()) {
      if (this.bytes <= this.most || this.kept.size <= 1) return;
      this.drop(block);
    }
  }

  private drop(block: Block): void {
    this.bytes -= this.kept.get(block)?.bytes ?? 0;
    this.kept.delete(block);
  }
}
