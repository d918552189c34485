// Costs as texts, formatted like those of `stackweave top`.

import type { MeasureName } from "./format";

function digits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0);
}

export function timeText(ns: number): string {
  const size = Math.abs(ns);
  if (size < 1e3) return `${ns.toFixed(0)} ns`;
  if (size < 1e6) return `${digits(ns / 1e3)} us`;
  if (size < 1e9) return `${digits(ns / 1e6)} ms`;
  return `${digits(ns / 1e9)} s`;
}

/** Returns a moment with the digits that steps of this many nanoseconds need: `12.3456 s`, `1:02:03.5`. */
export function momentText(ns: number, step: number, end = ns): string {
  const [unit, label] = end < 1e3 ? [1, "ns"] : end < 1e6 ? [1e3, "us"] : end < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  const places = Math.min(9, Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9)));
  if (end < 60e9) return `${(ns / unit).toFixed(places)} ${label}`;
  const seconds = ns / 1e9;
  const rest = (seconds % 60).toFixed(places).padStart(places > 0 ? places + 3 : 2, "0");
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  return hours > 0 ? `${hours}:${String(minutes % 60).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

export function bytesText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${value.toFixed(0)} B` : `${digits(value)} ${units[unit]}`;
}

export function countText(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}

/** Returns a cost in the unit of its measure. */
export function costText(measure: MeasureName, cost: number): string {
  if (measure === "time") return timeText(cost);
  if (measure === "samples" || measure === "allocations") return countText(cost);
  return bytesText(cost);
}

/** Returns the same with a sign, even for a plus. */
export function signedCostText(measure: MeasureName, cost: number): string {
  return cost > 0 ? `+${costText(measure, cost)}` : costText(measure, cost);
}

export function shareText(share: number): string {
  const percent = share * 100;
  return `${percent.toFixed(Math.abs(percent) < 9.95 ? 1 : 0)}%`;
}

/** Returns a share with one digit after the point, whatever its size: for shares that are compared. */
export function exactShareText(share: number): string {
  return `${(share * 100).toFixed(1)}%`;
}

/** Returns the growth of a cost, as `stackweave diff` writes it; empty if there was nothing before. */
export function growthText(before: number, after: number): string {
  if (before === 0) return "";
  const percent = (after / before - 1) * 100;
  if (percent >= 1000) return `${digits(after / before)}×`;
  return `${percent < 0 ? "" : "+"}${percent.toFixed(1)}%`;
}

export const MEASURE_LABELS: Record<MeasureName, string> = {
  time: "Wall time",
  samples: "Samples",
  peak: "Memory at the peak",
  live: "Memory not freed",
  bytes: "Memory allocated",
  allocations: "Allocations",
  temporary: "Temporary memory",
};

/** Returns the unit of the number of calls of a measure. */
export function countedText(measure: MeasureName): string {
  return measure === "time" ? "calls" : measure === "samples" ? "samples" : "blocks";
}

/** Returns a wall clock time in nanoseconds, in the reader's time zone; empty if unknown. */
export function dateText(wallNs: string): string {
  const date = new Date(Number(BigInt(wallNs) / 1_000_000n));
  return date.getTime() === 0 ? "" : date.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}
