// The curves beside that of live memory, and which of them are visible.

import type { Signal } from "@preact/signals";
import type { CurveColumns } from "../../../engine/memory/curve";
import { addressed } from "../../address";
import { curveFits, IN_MEMORY, PENDING, RESERVED, withPending } from "./plot";

/** Each is "on", "off", or "" for automatic: visible unless it hides live memory. */
const residentText = addressed("memory.resident", "");
const pendingText = addressed("memory.pending", "");
const reservedText = addressed("memory.reserved", "");

export interface OtherCurve {
  /** Its index among the series. */
  series: number;
  /** Its name in the style sheet. */
  name: string;
  label: string;
  title: string;
  /** Bytes at each time of the curve. */
  bytes: Float64Array;
  isShown: boolean;
  toggle(): void;
}

/** Returns the curves with data. */
export function otherCurves({ taken, inMemory, host }: CurveColumns): OtherCurve[] {
  const curves: OtherCurve[] = [];
  const add = (text: Signal<string>, of: Omit<OtherCurve, "isShown" | "toggle">, drawn = of.bytes) => {
    const { isThere, fits } = curveFits(taken, drawn);
    if (!isThere) return;
    const isShown = text.value === "" ? fits : text.value === "on";
    const toggle = () => {
      text.value = isShown ? "off" : "on";
    };
    curves.push({ ...of, isShown, toggle });
  };
  add(residentText, {
    series: IN_MEMORY,
    name: "resident",
    label: "Resident",
    title: "Show the resident size of the process",
    bytes: inMemory,
  });
  if (host?.pending.some((bytes) => bytes > 0)) {
    const pending = {
      series: PENDING,
      name: "pending",
      label: "With pending frees",
      title: "Include memory that was freed while the device still used it",
      bytes: host.pending,
    };
    add(pendingText, pending, withPending(taken, host.pending));
  }
  if (host?.reserved.some((bytes) => bytes > 0)) {
    add(reservedText, {
      series: RESERVED,
      name: "reserved",
      label: "Reserved (segments)",
      title: "Show how much the allocator had reserved on the device",
      bytes: host.reserved,
    });
  }
  return curves;
}
