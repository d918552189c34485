// The positions of tracks, counters and names, from the top.

import type { Head, ThreadIndex } from "../../../shared/format";

export const OVERVIEW = 44;
export const AXIS = 24;
/** The part above the tracks, which does not scroll. */
export const ABOVE = OVERVIEW + AXIS;
const PROCESS = 24;
const COUNTER = 34;
const GAP = 6;
const NAME = 17;
const MORE = 16;
const ROW = 18;
const LARGE_ROW = 22;
const FLAT_ROW = 3;

export interface ProcessPlace {
  kind: "process";
  process: number;
  top: number;
  height: number;
  isClosed: boolean;
}

export interface CounterPlace {
  kind: "counter";
  counter: number;
  top: number;
  height: number;
}

export interface TrackPlace {
  kind: "track";
  /** The index of the track in `TimelineInfo.tracks`. */
  track: number;
  top: number;
  height: number;
  rowsTop: number;
  rowHeight: number;
  rows: number;
  isClosed: boolean;
  /** Whether there are more depths than rows, or were before the user enlarged it. */
  more: "more" | "fewer" | null;
}

export type Placed = ProcessPlace | CounterPlace | TrackPlace;

export interface TimelineLayout {
  places: Placed[];
  height: number;
  /** The width of names on the left; 0 if they are above their tracks. */
  gutter: number;
}

/**
 * The processes and tracks that the user opened or closed, as words: `p1` (process 1 is closed), `c2` (track 2 is
 * closed), `e3` (has all rows).
 */
export type Opened = ReadonlySet<string>;

export function layoutOf(head: Head, threads: ThreadIndex[] | null, opened: Opened, width: number): TimelineLayout {
  const info = head.timeline!;
  const tracks = [...info.tracks.keys()].filter((of) => threads === null || threads.includes(info.tracks[of]!.thread));
  const gutter = width < 700 ? 0 : 170;
  const places: Placed[] = [];
  let top = 0;
  const put = (place: Placed) => {
    places.push(place);
    top += place.height;
  };
  for (const process of head.processes.keys()) {
    const self = tracks.filter((of) => head.threads[info.tracks[of]!.thread]?.process === process);
    const counters = [...info.counters.keys()].filter((of) => info.counters[of]!.process === process);
    if (self.length === 0 && (counters.length === 0 || threads !== null)) continue;
    const isClosed = opened.has(`p${process}`);
    if (head.processes.length > 1) put({ kind: "process", process, top, height: PROCESS, isClosed });
    if (isClosed) continue;
    for (const counter of counters) put({ kind: "counter", counter, top, height: COUNTER });
    for (const track of self)
      put(trackPlace(info.tracks[track]!.depth, track, top, { opened, gutter, of: tracks.length }));
  }
  return { places, height: top, gutter };
}

function trackPlace(
  depth: number,
  track: number,
  top: number,
  { opened, gutter, of }: { opened: Opened; gutter: number; of: number },
): TrackPlace {
  const isClosed = opened.has(`c${track}`);
  const isWhole = of === 1 || opened.has(`e${track}`);
  const limit = of <= 4 ? 24 : 10;
  const rows = Math.max(1, isClosed ? Math.min(depth, 5) : isWhole ? depth : Math.min(depth, limit));
  const rowHeight = isClosed ? FLAT_ROW : of === 1 ? LARGE_ROW : ROW;
  const more = isClosed || of === 1 || depth <= limit ? null : isWhole ? "fewer" : "more";
  const rowsTop = top + (gutter > 0 ? 0 : NAME);
  const least = gutter > 0 ? 20 : 0;
  const height = rowsTop - top + Math.max(rows * rowHeight, least) + (more ? MORE : 0) + GAP;
  return { kind: "track", track, top, height, rowsTop, rowHeight, rows, isClosed, more };
}

/** Returns the item at a height. */
export function placeAt(layout: TimelineLayout, y: number): Placed | undefined {
  return layout.places.find((place) => y >= place.top && y < place.top + place.height);
}
