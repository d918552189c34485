// The ticks of a time axis.

export interface Ticks {
  step: number;
  times: number[];
}

const MINUTE = 60e9;
/** Usual steps above a second. */
const LONG_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400].map(
  (seconds) => seconds * 1e9,
);

/** Returns the smallest usual step that is not shorter than this. */
export function niceStep(least: number): number {
  if (least > 1e9)
    return LONG_STEPS.find((step) => step >= least) ?? Math.ceil(least / (1440 * MINUTE)) * 1440 * MINUTE;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least - 1e-9)!;
}

/** Returns the ticks of a time, at most `most`. */
export function ticksOf(from: number, to: number, most: number): Ticks {
  const step = niceStep((to - from) / Math.max(most, 1));
  const times: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) times.push(at);
  return { step, times };
}
