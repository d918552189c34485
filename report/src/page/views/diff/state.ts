// The options of the view of changes, and the texts of costs.

import { BEFORE, scalesOf } from "../../../engine/diff/tree";
import type { Side } from "../../../engine/selected";
import { costText, exactShareText, growthText, signedCostText } from "../../../shared/units";
import { addressed } from "../../address";
import { isDark } from "../../colours";
import { measure } from "../../state";

/** "shares" of each side's total, or "costs". */
export const unit = addressed("diff.unit", "costs");
/** "self" or "total". */
export const cost = addressed("diff.cost", "self");
export const width = addressed("diff.width", "after");
export const shown = addressed("diff.show", "both");
/** The minimum change of a row, in percent of the greater total. */
export const least = addressed("diff.least", "0.1");

export const isShares = () => unit.value === "shares";
export const isTotal = () => cost.value === "total";
export const widthSide = (): Side => (width.value === "before" ? "before" : "after");

/** A cost of both sides. */
export interface Change {
  before: number;
  after: number;
}

/** Returns two costs as shown: absolute, or as shares of the totals. */
export function shownChange(change: Change, totals: [number, number]): Change {
  const [first, second] = scalesOf(...totals, isShares());
  return { before: change.before * first, after: change.after * second };
}

export function difference({ before, after }: Change): number {
  return after - before;
}

export function sideText(value: number): string {
  return isShares() ? exactShareText(value) : costText(measure.value, value);
}

export function differenceText(change: Change): string {
  const by = difference(change);
  if (!isShares()) return signedCostText(measure.value, by);
  return by > 0 ? `+${exactShareText(by)}` : exactShareText(by);
}

/** Returns "new", "gone", or the growth. */
export function growthOf(change: Change, sides: number): string {
  const only = onlyText(sides);
  return only === "" ? growthText(change.before, change.after) : only;
}

/** Returns the text for an item that only one side has. */
export function onlyText(sides: number): string {
  if (sides === 3 || sides === 0) return "";
  return sides === BEFORE ? "gone" : "new";
}

const STEPS = 24;
const RAMPS = {
  light: { none: [220, 8, 91], more: [8, 86, 66], less: [192, 62, 58] },
  dark: { none: [220, 9, 24], more: [8, 62, 42], less: [192, 72, 33] },
} as const;

/**
 * Returns the colour of a change relative to the greatest one, from -1 (less) to 1 (more). Everyone can distinguish red and
 * blue-green, and small changes from none.
 */
export function changeColour(part: number, dark = isDark()): string {
  const ramp = RAMPS[dark ? "dark" : "light"];
  const end = part < 0 ? ramp.less : ramp.more;
  const step = Math.round(Math.sqrt(Math.min(Math.abs(part), 1)) * STEPS) / STEPS;
  if (step === 0) return `hsl(${ramp.none[0]} ${ramp.none[1]}% ${ramp.none[2]}%)`;
  const mixed = (at: 1 | 2, part: number) => (ramp.none[at] + (end[at] - ramp.none[at]) * part).toFixed(1);
  return `hsl(${end[0]} ${mixed(1, Math.sqrt(step))}% ${mixed(2, step)}%)`;
}
