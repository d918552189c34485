// What is looked at: a measure, threads, and which frames are seen.

import type { MeasureName, ThreadIndex } from "./format";

export interface Selection {
  measure: MeasureName;
  /** Of measures of memory: whose. */
  device: number;
  /** `null`: all. */
  threads: ThreadIndex[] | null;
  /** Only this time, in nanoseconds, for the measure of time; `null`: all of it. What began before or ended later counts as a call, and
   * for what lies inside. */
  range: [number, number] | null;
  filter: Filter;
}

/**
 * Which frames are seen. What a frame that is not seen cost itself counts as its nearest caller's that is.
 *
 * With `internals` off nothing of the interpreter is visible, and of a library only functions that other code called: what
 * `stackweave top` and `tree` show. With all on the page has the numbers of exports that show everything.
 */
export interface Filter {
  python: boolean;
  native: boolean;
  libraries: boolean;
  internals: boolean;
  /** Only functions that have all of these words in their name, file or module; everything if it is empty. */
  only: string;
}

export const SHOW_DEFAULT: Filter = { python: true, native: true, libraries: true, internals: false, only: "" };
