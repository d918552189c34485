// Trees of a time that somebody chose, made of the spans of the timeline: what `stackweave tree --from --to` counts.
//
// What began before the range or ended behind it counts as a call, and for the time inside; the rules are those of
// `crates/stackweave-profile/src/aggregate/span_tree.rs`. One thing can differ: spans that begin in the same nanosecond at
// the same depth, and what they call, can't be told apart by their times; then what is called counts for the last of them.

import type { ThreadIndex, TimelineInfo, TrackInfo } from "../shared/format";
import { FOUND_OPEN, firstRow, spanPlaces, type Tile, type TilePlace, type TileStore } from "./timeline-tiles";
import { type CallTree, TreeBuilder } from "./tree";

export type Range = [from: number, to: number];

/** Says that somebody looks at something else by now. */
export class Superseded extends Error {
  constructor() {
    super("something else is looked at by now");
  }
}

/** Makes trees of ranges; those of one range are kept, and given up when another is asked for. */
export class RangeTrees {
  private range = "";
  private kept = new Map<TrackInfo, Promise<CallTree>>();
  private work = new AbortController();

  constructor(
    private readonly info: TimelineInfo,
    private readonly tiles: TileStore,
  ) {}

  /** The trees of these threads (all if `null`) in that time, one for each track. */
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

/** The spans of one level in a range, one after the other. */
class LevelCursor {
  private place = 0;
  private row = 0;
  private tile: Tile | undefined;
  private readonly places: TilePlace[];

  constructor(
    private readonly tiles: TileStore,
    places: TilePlace[],
    private readonly range: Range,
  ) {
    const [from, to] = range;
    this.places = places.filter((place) => place.earliest < to && place.latest >= from);
  }

  /** Where the next span is; `undefined` if there is none, or `load` has to be called before it is known. */
  current: { tile: Tile; row: number; begin: number; depth: number } | undefined;

  get isOver(): boolean {
    return !this.tile && this.place >= this.places.length;
  }

  /** Decodes the next tile. */
  async load(): Promise<void> {
    const place = this.places[this.place++]!;
    const tile = await this.tiles.get(place);
    this.tile = tile;
    this.row = (place.longest === Infinity ? 0 : firstRow(tile, this.range[0] - place.longest)) - 1;
    this.current = { tile, row: 0, begin: 0, depth: 0 };
    this.next();
  }

  next(): void {
    const [from, to] = this.range;
    const { begin, extent, depth } = this.tile!;
    for (let row = this.row + 1; row < begin.length && begin[row]! < to; row++) {
      if (begin[row]! >= from || begin[row]! + extent[row]! > from) {
        const current = this.current!;
        this.row = row;
        current.row = row;
        current.begin = begin[row]!;
        current.depth = depth[row]!;
        return;
      }
    }
    this.tile = undefined;
    this.current = undefined;
  }
}

/** How long the engine works before it looks whether anybody else wants something. */
const TURN_MS = 25;

async function rangeTree(
  tiles: TileStore,
  info: TimelineInfo,
  track: TrackInfo,
  range: Range,
  signal: AbortSignal,
): Promise<CallTree> {
  const cursors = info.levels.map((_, level) => new LevelCursor(tiles, spanPlaces(info, track, level), range));
  const tree = new SpanTree(range);
  let began = performance.now();
  for (;;) {
    for (const cursor of cursors) while (!cursor.current && !cursor.isOver) await cursor.load();
    if (signal.aborted) throw new Superseded();
    if (!tree.take(cursors)) return tree.finish();
    if (performance.now() - began > TURN_MS) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      began = performance.now();
    }
  }
}

/** Grows by spans in the order of their begins. */
class SpanTree {
  private readonly builder = new TreeBuilder(true);
  private readonly path: number[] = [];
  /** What was begun in a node last, which mostly is what begins in it next. */
  private readonly lastChild: number[] = [];
  private readonly lastItem: number[] = [];

  constructor(private readonly range: Range) {}

  /** Takes spans until a cursor has to load, or there are no more, or it has been enough for once. Whether there was one. */
  take(cursors: LevelCursor[]): boolean {
    for (let count = 0; count < 20_000; count++) {
      let first: LevelCursor | undefined;
      for (const cursor of cursors) {
        const { current } = cursor;
        if (!current) {
          if (cursor.isOver) continue;
          return true;
        }
        const least = first?.current;
        if (!least || current.begin < least.begin || (current.begin === least.begin && current.depth < least.depth)) {
          first = cursor;
        }
      }
      if (!first) return count > 0;
      this.add(first.current!.tile, first.current!.row);
      first.next();
    }
    return true;
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
