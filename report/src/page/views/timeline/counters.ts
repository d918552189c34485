// Counters as step charts.

import type { Head } from "../../../shared/format";
import { counterOf } from "./data";
import { FONT, type TimelineScene } from "./draw";
import type { CounterPlace } from "./layout";
import { counterText } from "./track-text";

/** Returns the step at a moment; -1 before the first. */
export function stepAt(times: Float64Array, time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (times[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export function drawCounter(scene: TimelineScene, head: Head, place: CounterPlace, y: number): void {
  const { surface, left } = scene;
  const { context, width, colour } = surface;
  const info = head.timeline!.counters[place.counter]!;
  const steps = counterOf(place.counter)?.stepsColumns;
  if (steps && steps.time.length > 0) fillSteps(scene, steps, y, place.height - 4);
  context.font = FONT;
  context.textBaseline = "top";
  context.textAlign = "left";
  if (left > 0) {
    context.fillStyle = colour("page");
    context.fillRect(0, y, left - 1, place.height);
  }
  context.fillStyle = colour("text");
  context.fillText(info.name, 8, y + 3);
  const most = steps?.value.reduce((a, b) => Math.max(a, b), -Infinity) ?? -Infinity;
  context.fillStyle = colour("dim");
  if (left > 0 && Number.isFinite(most)) context.fillText(`most ${counterText(info.name, most)}`, 8, y + 17);
  context.fillStyle = colour("line");
  context.fillRect(0, y + place.height - 1, width, 1);
}

/** Draws one column for each pixel, with the maximum in it. */
function fillSteps(
  scene: TimelineScene,
  { time, value }: { time: Float64Array; value: Float64Array },
  y: number,
  high: number,
) {
  const { surface, visible, left, pixelNs } = scene;
  const { context, width, colour } = surface;
  const most = value.reduce((a, b) => Math.max(a, b), 0) || 1;
  const least = value.reduce((a, b) => Math.min(a, b), 0);
  const scale = (high - 2) / (most - least || 1);
  context.fillStyle = colour("label");
  context.globalAlpha = 0.7;
  let step = stepAt(time, visible.from);
  for (let x = left; x < width; x++) {
    const until = visible.from + (x + 1 - left) * pixelNs;
    let highest = step >= 0 ? value[step]! : Number.NaN;
    while (step + 1 < time.length && time[step + 1]! < until) {
      step++;
      highest = Number.isNaN(highest) ? value[step]! : Math.max(highest, value[step]!);
    }
    if (!Number.isNaN(highest)) {
      const tall = Math.max(1, (highest - least) * scale);
      context.fillRect(x, y + high - tall, 1, tall);
    }
  }
  context.globalAlpha = 1;
}
