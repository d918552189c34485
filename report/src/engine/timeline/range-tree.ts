// Trees of a selected range of time, built from the spans of the timeline: the figures of `stackweave tree --start --end`.
//
// A span that began before the range or ended after it counts as a call, and for its time inside; the rules are those of
// `crates/stackweave-profile/src/aggregate/span_tree.rs`. One thing can differ: if spans of no duration begin in the same
// nanosecond at the same depth, the times do not show which one is the caller; callees count for the last of them.

import type { ThreadIndex, TimelineInfo, TrackInfo } from "../../shared/format";
import { type CallTree, TreeBuilder } from "../tree";
import { FOUND_OPEN, firstRow, spanPlaces, type Tile, type TilePlace, type TileStore } from "./tiles";

export type Range = [from: number, to: number];

/** Reports that the view has changed meanwhile. */
export class Superseded extends Error {
  constructor() {
    super("something else is looked at by now");
  }
}

/** Builds trees of ranges. The trees of one range are kept until another range is requested. */
export class RangeTrees {
  private range = "";
  private kept = new Map<TrackInfo, Promise<CallTree>>();
  private work = new AbortController();

  constructor(
    private readonly info: TimelineInfo,
    private readonly tiles: TileStore,
  ) {}

  /** Returns the trees of these threads (`null`: all) in that time, one for each track. */
  get(range: Range, threads: ThreadIndex[] | null): Promise<CallTree[]> {
    if (String(range) !== this.range) {
      this.work.abort();
      this.work = new AbortController();
      this.kept = new Map();
      this.range = String(range);
    }
    const tracks = this.info.tracks.filter((track) => threads === null || threads.includes(track.thread));
    return Promise.all(
      tracks.map((track) => {
        let tree = this.kept.get(track);
        if (!tree) {
          tree = rangeTree(this.tiles, this.info, track, range, this.work.signal);
          this.kept.set(track, tree);
        }
        return tree;
      }),
    );
  }
}

/** The spans of one tile that overlap a range, in order. */
class TileCursor {
  /** The current span. */
  row: number;
  begin = 0;
  depth = 0;
  isOver = false;

  constructor(
    readonly tile: Tile,
    { longest }: TilePlace,
    private readonly range: Range,
  ) {
    this.row = (longest === Infinity ? 0 : firstRow(tile, range[0] - longest)) - 1;
    this.next();
  }

  next(): void {
    const [from, to] = this.range;
    const { begin, extent, depth } = this.tile;
    for (let row = this.row + 1; row < begin.length && begin[row]! < to; row++) {
      if (begin[row]! >= from || begin[row]! + extent[row]! > from) {
        this.row = row;
        this.begin = begin[row]!;
        this.depth = depth[row]!;
        return;
      }
    }
    this.isOver = true;
  }
}

/** The time that the engine works before it checks for other queries. */
const TURN_MS = 25;

async function rangeTree(
  tiles: TileStore,
  info: TimelineInfo,
  track: TrackInfo,
  range: Range,
  signal: AbortSignal,
): Promise<CallTree> {
  const places = info.levels
    .flatMap((_, level) => spanPlaces(info, track, level))
    .filter((place) => place.earliest < range[1] && place.latest >= range[0])
    .sort((a, b) => a.earliest - b.earliest);
  const tree = new SpanTree(range);
  let cursors: TileCursor[] = [];
  let began = performance.now();
  for (let next = 0; next < places.length || cursors.length > 0; ) {
    if (signal.aborted) throw new Superseded();
    const place = places[next];
    if (tree.take(cursors, place?.earliest ?? Infinity) && place) {
      cursors.push(new TileCursor(await tiles.get(place), place, range));
      next++;
    }
    cursors = cursors.filter((cursor) => !cursor.isOver);
    if (performance.now() - began > TURN_MS) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      began = performance.now();
    }
  }
  return tree.finish();
}

/** A tree to which spans are added in the order of their starts. */
class SpanTree {
  private readonly builder = new TreeBuilder(true);
  private readonly path: number[] = [];
  /** The last callee of each node, which is usually the next one too. */
  private readonly lastChild: number[] = [];
  private readonly lastItem: number[] = [];

  constructor(private readonly range: Range) {}

  /** Adds the spans that begin before a time; returns `false` when it has worked long enough and there may be more. */
  take(cursors: TileCursor[], before: number): boolean {
    for (let count = 0; count < 20_000; count++) {
      let first: TileCursor | undefined;
      for (const cursor of cursors) if (!cursor.isOver && (!first || isEarlier(cursor, first))) first = cursor;
      if (!first || first.begin >= before) return true;
      this.add(first.tile, first.row);
      first.next();
    }
    return false;
  }

  private add(tile: Tile, row: number): void {
    const [from, to] = this.range;
    const begin = tile.begin[row]!;
    const time = Math.min(begin + tile.extent[row]!, to) - Math.max(begin, from);
    const depth = tile.depth[row]!;
    const parent = depth === 0 ? 0 : (this.path[depth - 1] ?? 0);
    const node = this.child(parent, tile.frame[row]! - 1);
    this.path[depth] = node;
    this.builder.add(node, (tile.flags![row]! & FOUND_OPEN) === 0 ? 1 : 0, time);
    if (parent !== 0) this.builder.add(parent, 0, -time);
  }

  private child(parent: number, frame: number): number {
    if (this.lastItem[parent] === frame) return this.lastChild[parent]!;
    const node = this.builder.child(parent, frame);
    this.lastChild[parent] = node;
    this.lastItem[parent] = frame;
    return node;
  }

  finish(): CallTree {
    return this.builder.finish();
  }
}

/** Callers come before callees; of spans with the same start and depth, the shorter ones come first. */
function isEarlier(a: TileCursor, b: TileCursor): boolean {
  if (a.begin !== b.begin) return a.begin < b.begin;
  return a.depth !== b.depth ? a.depth < b.depth : a.tile.extent[a.row]! < b.tile.extent[b.row]!;
}
