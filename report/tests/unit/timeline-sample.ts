// Builds timelines from spans in memory, with tiles by the definition in `shared/format.ts`.

import { TileStore } from "../../src/engine/timeline/tiles";
import type { Tiles, TimelineInfo, TrackInfo } from "../../src/shared/format";
import { column, varint } from "./sample";

export interface SpanSample {
  begin: number;
  extent: number;
  depth: number;
  frame: number;
  flags?: number;
  detail?: Record<string, unknown>;
}

interface Piece {
  begin: number;
  extent: number;
  depth: number;
  /** By frame. */
  times: Map<number, number>;
  calls: number;
  busy: number;
}

export interface TimelineSample {
  info: TimelineInfo;
  blocks: Uint8Array[];
  tiles: TileStore;
}

export const LEVELS = [0, 100, 800, 6400];

const byBegin = (a: { begin: number; depth: number }, b: { begin: number; depth: number }) =>
  a.begin - b.begin || a.depth - b.depth;

/** Returns a timeline with one track for each list of spans. Tiles have at most `rows` rows. */
export function timelineOf(tracks: SpanSample[][], rows = 16, most?: number): TimelineSample {
  const blocks: Uint8Array[] = [];
  const info: TimelineInfo = {
    levels: LEVELS,
    tracks: tracks.map((spans, thread) => trackOf(spans, thread, rows, blocks)),
    counters: [],
  };
  const tiles = new TileStore({ bytes: async (block) => blocks[block]! }, most);
  return { info, blocks, tiles };
}

function trackOf(spans: SpanSample[], thread: number, rows: number, blocks: Uint8Array[]): TrackInfo {
  const sorted = [...spans].sort(byBegin);
  const inLevel = (span: SpanSample, level: number) =>
    span.extent >= LEVELS[level]! && span.extent < (LEVELS[level + 1] ?? Infinity);
  return {
    thread,
    beganNs: Math.min(...spans.map((of) => of.begin)),
    endedNs: Math.max(...spans.map((of) => of.begin + of.extent)),
    depth: Math.max(...spans.map((of) => of.depth + 1)),
    spans: spans.length,
    levels: LEVELS.map((_, level) =>
      tilesOf(
        sorted.filter((span) => inLevel(span, level)),
        rows,
        blocks,
        spanBytes,
      ),
    ),
    dense: LEVELS.map((least) => tilesOf(piecesOf(sorted, least), rows, blocks, pieceBytes)),
    instants: null,
  };
}

/** Merges spans shorter than a level, unless a longer one is between them or the result is too long. */
export function piecesOf(sorted: SpanSample[], least: number): Piece[] {
  const growing = new Map<number, Piece>();
  const pieces: Piece[] = [];
  for (const { begin, extent, depth, frame } of sorted.filter((span) => span.extent < least)) {
    let piece = growing.get(depth);
    const isNear = piece && begin - (piece.begin + piece.extent) < least && begin + extent - piece.begin <= 4 * least;
    if (!piece || !isNear) {
      piece = { begin, extent: 0, depth, times: new Map(), calls: 0, busy: 0 };
      growing.set(depth, piece);
      pieces.push(piece);
    }
    piece.extent = begin + extent - piece.begin;
    piece.calls++;
    piece.busy += extent;
    piece.times.set(frame, (piece.times.get(frame) ?? 0) + extent);
  }
  return pieces.sort(byBegin);
}

function tilesOf<T extends { begin: number; extent: number; depth: number }>(
  all: T[],
  rows: number,
  blocks: Uint8Array[],
  bytes: (of: T[]) => number[],
): Tiles {
  const tiles: [number, number, number, number][] = [];
  // They are known only when they end, so the tiles of a level overlap.
  const byEnd = [...all].sort((a, b) => a.begin + a.extent - (b.begin + b.extent));
  for (let at = 0; at < all.length; at += rows) {
    const some = byEnd.slice(at, at + rows).sort(byBegin);
    blocks.push(Uint8Array.from(bytes(some)));
    tiles.push([blocks.length - 1, some[0]!.begin, Math.max(...some.map((of) => of.begin + of.extent)), some.length]);
  }
  return tiles.sort((a, b) => a[1] - b[1]).flat();
}

const differences = (of: { begin: number }[]) => of.map((row, at) => row.begin - (of[at - 1] ?? of[0]!).begin);

function spanBytes(spans: SpanSample[]): number[] {
  const details: Record<string, unknown>[] = [];
  const detail = spans.map((span) => (span.detail ? details.push(span.detail) : 0));
  const json = [...Buffer.from(JSON.stringify(details))];
  return [
    differences(spans),
    spans.map((of) => of.extent),
    spans.map((of) => of.depth),
    spans.map((of) => of.frame),
    spans.map((of) => of.flags ?? 0),
    detail,
  ]
    .flatMap(column)
    .concat(varint(json.length), json);
}

function pieceBytes(pieces: Piece[]): number[] {
  const shown = ({ times, busy }: Piece) => {
    const [frame, time] = [...times].sort((a, b) => b[1] - a[1])[0]!;
    return time >= busy / 4 ? frame + 1 : 0;
  };
  return [
    differences(pieces),
    pieces.map((of) => of.extent),
    pieces.map((of) => of.depth),
    pieces.map(shown),
    pieces.map((of) => of.calls),
    pieces.map((of) => of.busy),
  ].flatMap(column);
}

/** Returns a generator of small pseudo-random numbers, which are the same for the same seed. */
export function randomOf(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** Returns nested spans of all lengths. No two of a depth start at the same time. */
export function randomSpans(random: (below: number) => number, length: number, frames = 7): SpanSample[] {
  const spans: SpanSample[] = [];
  const fill = (from: number, to: number, depth: number) => {
    let at = from;
    while (at < to && depth < 6) {
      const extent = Math.min(to - at, random(3) === 0 ? random(to - from) : random(150));
      spans.push({ begin: at, extent, depth, frame: random(frames) });
      if (extent > 2) fill(at + random(2), at + extent - random(2), depth + 1);
      at += extent + 1 + random(random(2) ? 20 : 2000);
    }
  };
  fill(5, length, 0);
  return spans;
}
