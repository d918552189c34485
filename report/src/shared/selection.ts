// The selection: a measure, threads, and visible frames.

import type { MeasureName, ThreadIndex } from "./format";

export interface Selection {
  measure: MeasureName;
  /** The device of measures of memory. */
  device: number;
  /** `null`: all. */
  threads: ThreadIndex[] | null;
  /** A range in nanoseconds, for the measure of time; `null`: all of it. Spans that overlap it count with their time inside. */
  range: [number, number] | null;
  filter: Filter;
}

/**
 * The visible frames. The self cost of a hidden frame counts for its nearest visible caller.
 *
 * With `internals` off nothing of the interpreter is visible, and of a library only functions that other code called, as in
 * `stackweave top` and `tree`. With everything on, the page has the figures of exports that show everything.
 */
export interface Filter {
  python: boolean;
  native: boolean;
  libraries: boolean;
  internals: boolean;
  /** Only functions that have all of these words in their name, file or module; empty for everything. */
  only: string;
}

export const SHOW_DEFAULT: Filter = { python: true, native: true, libraries: true, internals: false, only: "" };
