// The selection, for all views. All of it is kept in the address.

import { batch, computed, signal } from "@preact/signals";
import type { FunctionIndex, Head, MeasureName, ThreadIndex } from "../shared/format";
import type { Names } from "../shared/names";
import { type Filter, type Selection, SHOW_DEFAULT } from "../shared/selection";
import { addressed } from "./address";

/** The report, once it is open. Views are rendered only then. */
export const report = signal<{ head: Head; names: Names } | null>(null);

export function head(): Head {
  return report.value!.head;
}

export function names(): Names {
  return report.value!.names;
}

export type ViewName = "overview" | "flame" | "timeline" | "table" | "graph" | "memory" | "source" | "diff";

export const view = addressed("view", "overview", { isStep: true });
/** The text of the search: matches are highlighted in each view. */
export const search = addressed("search", "");
export const measureText = addressed("measure", "");
const deviceText = addressed("device", "");
/** The pool of the curve of a device's memory, by its index in `HostMemory.pools`; "" for all pools. */
export const poolText = addressed("memory.pool", "");
/** The selected failed request, by its index in `HostMemory.failures`. */
export const failureText = addressed("memory.failure", "");
const threadsText = addressed("threads", "");
const functionText = addressed("function", "", { isStep: true });
const shown = addressed("show", "python native libraries");
export const only = addressed("only", "");

/** The measures with trees in the report, the most used first. */
export const measures = computed<MeasureName[]>(() => {
  const order: MeasureName[] = ["time", "samples", "peak", "live", "bytes", "allocations", "temporary"];
  const there = new Set<MeasureName>(report.value?.head.trees.map((tree) => tree.measure));
  if (there.has("bytes")) there.add("allocations");
  return order.filter((measure) => there.has(measure));
});

export const measure = computed<MeasureName>(() => {
  const requested = measureText.value as MeasureName;
  return measures.value.includes(requested) ? requested : (measures.value[0] ?? "time");
});

/** The device of measures of memory: the selected one, or the first. */
export const device = computed<number>(() => {
  const devices = report.value?.head.memory?.devices ?? [];
  const requested = deviceText.value === "" ? undefined : Number(deviceText.value);
  return (devices.find((of) => of.device === requested) ?? devices[0])?.device ?? -1;
});

export function chooseDevice(chosen: string): void {
  batch(() => {
    deviceText.value = chosen;
    poolText.value = failureText.value = "";
  });
}

/** Whether the measure is one of memory, which belongs to a device. */
export const isMemory = computed<boolean>(() => measure.value !== "time" && measure.value !== "samples");

export const threads = computed<ThreadIndex[] | null>(() =>
  threadsText.value === "" ? null : threadsText.value.split(" ").map(Number),
);

export function chooseThreads(chosen: ThreadIndex[] | null): void {
  threadsText.value = chosen === null ? "" : chosen.join(" ");
}

const rangeText = addressed("range", "", { isStep: true });

/** The selected range of time; `null` for all of it. */
export const range = computed<[number, number] | null>(() => {
  const [from, to] = rangeText.value.split("-").map(Number);
  return from !== undefined && to !== undefined && from < to ? [from, to] : null;
});

export function chooseRange(chosen: [number, number] | null): void {
  rangeText.value = chosen === null ? "" : chosen.map((time) => Math.round(time)).join("-");
}

export type Toggle = "python" | "native" | "libraries" | "internals";

export const filter = computed<Filter>(() => {
  const words = shown.value.split(" ");
  const has = (word: Toggle) => words.includes(word);
  return {
    ...SHOW_DEFAULT,
    python: has("python"),
    native: has("native"),
    libraries: has("libraries"),
    internals: has("internals"),
    only: only.value,
  };
});

export function toggle(of: Toggle): void {
  const words = shown.value.split(" ").filter(Boolean);
  const order: Toggle[] = ["python", "native", "libraries", "internals"];
  const next = words.includes(of) ? words.filter((word) => word !== of) : [...words, of];
  shown.value = order.filter((word) => next.includes(word)).join(" ") || "nothing";
}

/** The selection, for queries. */
export const selection = computed<Selection>(() => ({
  measure: measure.value,
  device: isMemory.value ? device.value : -1,
  threads: threads.value,
  range: range.value,
  filter: filter.value,
}));

/** The selected function: each view shows where it is. */
export const selected = computed<FunctionIndex | null>(() =>
  functionText.value === "" ? null : Number(functionText.value),
);

export function select(of: FunctionIndex | null): void {
  functionText.value = of === null ? "" : String(of);
}

/** Opens a view; if a function is given, selects it. */
export function show(name: ViewName, of?: FunctionIndex): void {
  if (of !== undefined) select(of);
  view.value = name;
}
