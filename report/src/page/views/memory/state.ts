// The selected memory. All of it is kept in the address.

import { batch, signal } from "@preact/signals";
import type { MemoryPart } from "../../../engine/memory/methods";
import type { DeviceMemory } from "../../../shared/format";
import { timeText } from "../../../shared/units";
import { addressed } from "../../address";
import { device as chosenDevice, failureText, head, poolText } from "../../state";

const MEASURES = ["peak", "live", "bytes", "temporary"] as const;
export type MemoryMeasure = (typeof MEASURES)[number];

const partText = addressed("memory.part", "peak");
/** Moments by index in `MomentsInfo.times`: the selected one, and the one that it is compared with. */
const atText = addressed("memory.at", "");
const otherText = addressed("memory.other", "");
/** Whether the next click selects the moment to compare with, for devices without a Shift key. */
export const isComparing = signal(false);
/** Returns the selected memory. */
export function device(): DeviceMemory {
  const { devices } = head().memory!;
  return devices.find((of) => of.device === chosenDevice.value) ?? devices[0]!;
}

/** Returns the pool whose curve is shown; `null` for all of them. */
export function pool(of: DeviceMemory): number | null {
  return poolText.value === "" || !of.host?.pools[Number(poolText.value)] ? null : Number(poolText.value);
}

/** Returns the open request; `null` for none. */
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

/** Returns the selected moments: none, one, or two. */
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

/** Compares the selected moment with another one; without a selected one, selects this. */
export function compareWith(other: number): void {
  const { at } = chosenMoments();
  isComparing.value = false;
  if (at === null) chooseMoment(other);
  else otherText.value = String(other);
}

/** Returns the moment nearest to a time. */
export function nearestMoment(times: number[], time: number): number {
  let nearest = 0;
  for (const [place, at] of times.entries()) {
    if (Math.abs(at - time) < Math.abs(times[nearest]! - time)) nearest = place;
  }
  return nearest;
}

/** Returns the moment of the peak; the first one if that is unknown. */
export function peakMoment(of: DeviceMemory): number {
  return nearestMoment(of.moments?.times ?? [], of.peakNs ?? 0);
}

/** Returns a description of the selection, for headings. */
export function partWords(of: MemoryPart, times: number[]): string {
  if (of.kind === "moment") return `Live memory at ${timeText(times[of.at]!)}`;
  if (of.kind === "growth") return `Growth from ${timeText(times[of.from]!)} to ${timeText(times[of.to]!)}`;
  return {
    peak: "Live memory at the peak",
    live: "Leak candidates",
    bytes: "Allocated memory",
    temporary: "Temporary memory",
  }[of.measure];
}
