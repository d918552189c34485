// Memory over time: points that the recorder wrote at intervals, and exact figures at some moments.

import type { Columns } from "../decode";

export interface CurveColumns {
  /** In order. */
  time: Float64Array;
  taken: Float64Array;
  /** NaN if unknown. */
  inMemory: Float64Array;
  /** The figures of a host's allocator; `null` for other memory. */
  host: { pending: Float64Array; reserved: Float64Array } | null;
}

/** Returns the curve of the process's own memory. */
export function processCurve(columns: Columns): CurveColumns {
  const [time, taken] = [columns.rising(), columns.plain()];
  const inMemory = columns.plain().map((bytes) => (bytes === 0 ? Number.NaN : bytes - 1));
  return { time, taken, inMemory, host: null };
}

/** Returns the curve of a device, or of one of its pools. */
export function hostCurve(columns: Columns): CurveColumns {
  const [time, taken] = [columns.rising(), columns.plain()];
  const host = { pending: columns.plain(), reserved: columns.plain() };
  return { time, taken, inMemory: new Float64Array(time.length).fill(Number.NaN), host };
}

/** Returns a curve with the moments inserted; where both have a point at the same time, that of the curve is kept. */
export function withMoments(curve: CurveColumns, times: number[], bytes: Float64Array): CurveColumns {
  const known = new Set(curve.time);
  const points: [number, number, number][] = [];
  for (const [row, time] of curve.time.entries()) points.push([time, curve.taken[row]!, curve.inMemory[row]!]);
  for (const [moment, time] of times.entries()) {
    if (!known.has(time)) points.push([time, bytes[moment]!, Number.NaN]);
  }
  // Points of the same time keep their order.
  points.sort((a, b) => a[0] - b[0]);
  return {
    time: Float64Array.from(points, (point) => point[0]),
    taken: Float64Array.from(points, (point) => point[1]),
    inMemory: Float64Array.from(points, (point) => point[2]),
    host: null,
  };
}
