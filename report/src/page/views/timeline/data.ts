// What the engine has said of tracks. While a newer answer is on its way the one before is drawn: nothing ever blinks.

import { signal } from "@preact/signals";
import type { CounterSteps, Sight } from "../../../engine/timeline/methods";
import type { Window } from "../../../engine/timeline/sight";
import { ask } from "../../engine";
import type { Order } from "./look";
import type { Span } from "./state";

/** The part of a track that is known. */
export interface Known {
  sight: Sight;
  window: Window;
  /** Rows in the order in which they are drawn, for the look that this key stands for. */
  order: Order | null;
}

interface Asked {
  known: Known | null;
  inFlight: boolean;
  wanted: Window | null;
}

const tracks = new Map<number, Asked>();
const counters = new Map<number, CounterSteps | null>();
/** How often an answer came: what is drawn depends on it. */
export const arrived = signal(0);
export const problem = signal<string | null>(null);

export function knownOf(track: number): Known | null {
  return tracks.get(track)?.known ?? null;
}

/**
 * Asks for a track, if what is known is not enough. A window more is asked for than is seen, half of it at each side, and
 * scales are powers of two, so that small steps need no answer. One question at a time: what is wanted when its answer comes
 * is asked next, and what was wanted in between is never asked.
 */
export function want(track: number, { from, to }: Span, pixelNs: number, depthLimit: number, most: number): void {
  const asked = tracks.get(track) ?? { known: null, inFlight: false, wanted: null };
  tracks.set(track, asked);
  const scale = 2 ** Math.floor(Math.log2(pixelNs));
  const known = asked.known?.window;
  const isEnough =
    known && known.pixelNs === scale && known.from <= from && known.to >= to && known.depthLimit >= depthLimit;
  if (isEnough) {
    asked.wanted = null;
    return;
  }
  const half = (to - from) / 2;
  asked.wanted = { from: from - half, to: to + half, pixelNs: scale, depthLimit, most };
  if (!asked.inFlight) void askNext(track, asked);
}

async function askNext(track: number, asked: Asked): Promise<void> {
  asked.inFlight = true;
  while (asked.wanted) {
    const window = asked.wanted;
    asked.wanted = null;
    try {
      asked.known = { sight: await ask("timeline", track, window), window, order: null };
      problem.value = null;
    } catch (error) {
      problem.value = error instanceof Error ? error.message : String(error);
      break;
    }
    arrived.value++;
  }
  asked.inFlight = false;
}

export function counterOf(counter: number): CounterSteps | null {
  const known = counters.get(counter);
  if (known !== undefined) return known;
  counters.set(counter, null);
  void ask("timelineCounter", counter).then((steps) => {
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

/** How many spans were open at each moment of the whole time, on these tracks; `null` until it is known. */
export function activityOf(of: number[]): Float64Array | null {
  const key = of.join(" ");
  if (activity.key !== key) {
    const asked: Activity = { key, open: activity.open };
    activity = asked;
    void ask("timelineActivity", of, PIECES).then(({ activityColumns }) => {
      asked.open = activityColumns.open;
      arrived.value++;
    });
  }
  return activity.open;
}
