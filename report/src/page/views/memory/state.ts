// Which memory is looked at. All of it is kept in the address.

import { batch, signal } from "@preact/signals";
import type { MemoryPart } from "../../../engine/memory/methods";
import type { DeviceMemory } from "../../../shared/format";
import { timeText } from "../../../shared/units";
import { addressed } from "../../address";
import { device as chosenDevice, failureText, head, poolText } from "../../state";

const MEASURES = ["peak", "live", "bytes", "temporary"] as const;
export type MemoryMeasure = (typeof MEASURES)[number];

const partText = addressed("memory.part", "peak");
/** Moments by their place in `MomentsInfo.times`: the one that is looked at, and the one it is compared with. */
const atText = addressed("memory.at", "");
const otherText = addressed("memory.other", "");
/** Whether the next moment that is chosen is one to compare with: for those who have no Shift key. */
export const isComparing = signal(false);
/** The memory that is looked at. */
export function device(): DeviceMemory {
  const { devices } = head().memory!;
  return devices.find((of) => of.device === chosenDevice.value) ?? devices[0]!;
}

/** The pool whose curve is shown; `null` for all of them. */
export function pool(of: DeviceMemory): number | null {
  return poolText.value === "" || !of.host?.pools[Number(poolText.value)] ? null : Number(poolText.value);
}

/** The request that is open; `null` for none. */
export function failure(of: DeviceMemory): number | null {
  return failureText.value === "" || !of.host?.failures[Number(failureText.value)] ? null : Number(failureText.value);
}

export function chooseFailure(chosen: number | null): void {
  failureText.value = chosen === null ? "" : String(chosen);
}

function placeIn(text: string): number | null {
  const place = Number(text);
  const moments = device().moments?.times.length ?? 0;
  return text !== "" && Number.isInteger(place) && place >= 0 && place < moments ? place : null;
}

/** The moments that are chosen: none, one, or two. */
export function chosenMoments(): { at: number | null; other: number | null } {
  if (partText.value !== "moment") return { at: null, other: null };
  const at = placeIn(atText.value);
  return { at, other: at === null ? null : placeIn(otherText.value) };
}

export function part(): MemoryPart {
  const { at, other } = chosenMoments();
  if (at !== null && other !== null && at !== other) {
    return { kind: "growth", from: Math.min(at, other), to: Math.max(at, other) };
  }
  if (at !== null) return { kind: "moment", at };
  const measure = MEASURES.find((name) => name === partText.value) ?? "peak";
  return { kind: "measure", measure };
}

export function chooseMeasure(measure: MemoryMeasure): void {
  partText.value = measure;
}

export function chooseMoment(at: number): void {
  batch(() => {
    partText.value = "moment";
    atText.value = String(at);
    otherText.value = "";
    isComparing.value = false;
  });
}

/** Compares the moment that is looked at with another one; if there is none yet, this is it. */
export function compareWith(other: number): void {
  const { at } = chosenMoments();
  isComparing.value = false;
  if (at === null) chooseMoment(other);
  else otherText.value = String(other);
}

/** The moment that is nearest to a time. */
export function nearestMoment(times: number[], time: number): number {
  let nearest = 0;
  for (const [place, at] of times.entries()) {
    if (Math.abs(at - time) < Math.abs(times[nearest]! - time)) nearest = place;
  }
  return nearest;
}

/** The moment at the peak; the first one if it is not known which it is. */
export function peakMoment(of: DeviceMemory): number {
  return nearestMoment(of.moments?.times ?? [], of.peakNs ?? 0);
}

/** What is looked at, in words that go on a heading. */
export function partWords(of: MemoryPart, times: number[]): string {
  if (of.kind === "moment") return `What was taken at ${timeText(times[of.at]!)}`;
  if (of.kind === "growth") return `Growth from ${timeText(times[of.from]!)} to ${timeText(times[of.to]!)}`;
  return {
    peak: "What was taken at the peak",
    live: "What was never freed",
    bytes: "All that was allocated",
    temporary: "What was freed at once",
  }[of.measure];
}
