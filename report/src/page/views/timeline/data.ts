// The engine's answers about tracks. Until a new answer arrives the previous one is drawn, so that nothing flickers.

import { signal } from "@preact/signals";
import type { CounterSteps, TrackContents } from "../../../engine/timeline/methods";
import type { Window } from "../../../engine/timeline/visible-spans";
import { query } from "../../engine";
import type { DrawingOrder } from "./drawing-style";
import type { TimeRange } from "./state";

/** The known part of a track. */
export interface Known {
  contents: TrackContents;
  window: Window;
  /** Rows in the order of drawing, for the look with this key. */
  order: DrawingOrder | null;
}

interface TrackRequest {
  known: Known | null;
  inFlight: boolean;
  wanted: Window | null;
}

const tracks = new Map<number, TrackRequest>();
const counters = new Map<number, CounterSteps | null>();
/** The number of answers so far: the picture depends on it. */
export const arrived = signal(0);
export const problem = signal<string | null>(null);

export function knownOf(track: number): Known | null {
  return tracks.get(track)?.known ?? null;
}

/**
 * Queries a track if the known part is too small. A request covers one window more than is visible, half of it on each side,
 * and scales are powers of two, so that small steps need no new answer. There is one request at a time; after its answer only
 * the newest wanted window is requested.
 */
export function want(track: number, { from, to }: TimeRange, pixelNs: number, depthLimit: number, most: number): void {
  const request = tracks.get(track) ?? { known: null, inFlight: false, wanted: null };
  tracks.set(track, request);
  const scale = 2 ** Math.floor(Math.log2(pixelNs));
  const known = request.known?.window;
  const isEnough =
    known && known.pixelNs === scale && known.from <= from && known.to >= to && known.depthLimit >= depthLimit;
  if (isEnough) {
    request.wanted = null;
    return;
  }
  const half = (to - from) / 2;
  request.wanted = { from: from - half, to: to + half, pixelNs: scale, depthLimit, most };
  if (!request.inFlight) void fetchNext(track, request);
}

async function fetchNext(track: number, request: TrackRequest): Promise<void> {
  request.inFlight = true;
  while (request.wanted) {
    const window = request.wanted;
    request.wanted = null;
    try {
      request.known = { contents: await query("timeline", track, window), window, order: null };
      problem.value = null;
    } catch (error) {
      problem.value = error instanceof Error ? error.message : String(error);
      break;
    }
    arrived.value++;
  }
  request.inFlight = false;
}

export function counterOf(counter: number): CounterSteps | null {
  const known = counters.get(counter);
  if (known !== undefined) return known;
  counters.set(counter, null);
  void query("timelineCounter", counter).then((steps) => {
    counters.set(counter, steps);
    arrived.value++;
  });
  return null;
}

interface Activity {
  key: string;
  open: Float64Array | null;
}
let activity: Activity = { key: "", open: null };
const PIECES = 600;

/** Returns the number of open spans of these tracks at each moment of the recording; `null` until it is known. */
export function activityOf(of: number[]): Float64Array | null {
  const key = of.join(" ");
  if (activity.key !== key) {
    const request: Activity = { key, open: activity.open };
    activity = request;
    void query("timelineActivity", of, PIECES).then(({ activityColumns }) => {
      request.open = activityColumns.open;
      arrived.value++;
    });
  }
  return activity.open;
}
