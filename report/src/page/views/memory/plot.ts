// The curve of memory, drawn by uPlot.

import uPlot from "uplot";
import type { CurveColumns } from "../../../engine/memory/curve";
import { bytesText, timeText } from "../../../shared/units";

/** The marks on the curve. */
export interface CurveMarks {
  peak: { time: number; bytes: number } | null;
  /** Times of all moments, and of the selected ones. */
  moments: number[];
  chosen: { time: number; name: string }[];
  /** Times of failed requests, and the selected one. */
  failures: number[];
  failure: number | null;
  /** The device's total memory, if the curve comes near it. */
  total: number | null;
}

export interface PlotEvents {
  marks(): CurveMarks;
  /** Called with the index under the pointer, or with `null`. */
  hover(place: number | null): void;
  zoomed(from: number, to: number): void;
}

/** Powers of two: whole KiB, MiB, GiB. */
const BYTE_STEPS = Array.from({ length: 60 }, (_, power) => 2 ** power);

function themed(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function plot(place: HTMLElement, data: CurveColumns, events: PlotEvents): uPlot {
  const [text, line] = [themed("dim"), themed("line")];
  const axis = { stroke: text, font: "11px system-ui, sans-serif", ticks: { stroke: line, size: 4 } };
  // A host's figures hold until its next ones; other curves have points at intervals, joined by lines.
  const paths = data.host ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {};
  const curve = { width: 1.5, points: { show: false }, ...paths };
  const options: uPlot.Options = {
    width: Math.max(80, place.clientWidth),
    height: Math.max(80, place.clientHeight),
    padding: [14, 26, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false, dist: 5 }, points: { size: 7 } },
    scales: { x: { time: false }, y: { range: (_, __, max) => [0, highest(max, events.marks().total) * 1.08 || 1] } },
    axes: [
      { ...axis, grid: { show: false }, size: 30, values: (_, splits) => splits.map((at) => timeText(at)) },
      {
        ...axis,
        grid: { stroke: line, width: 1 },
        size: 66,
        incrs: BYTE_STEPS,
        values: (_, splits) => splits.map((bytes) => bytesText(bytes)),
      },
    ],
    series: [
      {},
      { ...curve, stroke: themed("python"), fill: `${themed("python")}2e` },
      { ...curve, stroke: themed("native"), spanGaps: true, show: false },
      { ...curve, stroke: themed("label"), show: false },
      { ...curve, stroke: themed("native"), show: false },
    ],
    hooks: {
      draw: [(made) => drawMarks(made, events.marks())],
      setCursor: [(made) => events.hover(made.cursor.left! < 0 ? null : (made.cursor.idx ?? null))],
      setScale: [
        (made, key) => {
          const { min, max } = made.scales.x!;
          if (key === "x" && min != null && max != null) events.zoomed(min, max);
        },
      ],
    },
  };
  const known = Array.from(data.inMemory, (bytes) => (isKnown(bytes) ? bytes : null));
  const nothing = () => Array.from(data.time, () => null);
  const pending = data.host ? withPending(data.taken, data.host.pending) : nothing();
  const all = [data.time, data.taken, known, pending, data.host?.reserved ?? nothing()];
  return new uPlot(options, all as unknown as uPlot.AlignedData, place);
}

/** Returns the curve of pending frees, on top of live memory. */
export function withPending(taken: Float64Array, pending: Float64Array): Float64Array {
  return pending.map((bytes, at) => bytes + taken[at]!);
}

function highest(max: number | null, total: number | null): number {
  return Math.max(max ?? 0, total ?? 0);
}

function isKnown(bytes: number): boolean {
  return !Number.isNaN(bytes);
}

/** The indexes of the series beside live memory. */
export const IN_MEMORY = 2;
export const PENDING = 3;
export const RESERVED = 4;
/** Live memory is still visible if resident memory is at most this many times as much. */
const AS_LARGE = 8;

/** Returns whether a curve has data, and leaves enough height for that of live memory. */
export function curveFits(taken: Float64Array, other: Float64Array): { isThere: boolean; fits: boolean } {
  const most = (column: Float64Array) =>
    column.reduce((high, bytes) => (isKnown(bytes) ? Math.max(high, bytes) : high), 0);
  return { isThere: other.some(isKnown), fits: most(other) <= AS_LARGE * most(taken) };
}

export function showSeries(made: uPlot, series: number, isShown: boolean): void {
  if (made.series[series]!.show !== isShown) made.setSeries(series, { show: isShown });
}

function drawMarks(made: uPlot, marks: CurveMarks): void {
  const { peak, moments, chosen } = marks;
  const { ctx, bbox } = made;
  const ratio = devicePixelRatio || 1;
  const across = (time: number) => Math.round(made.valToPos(time, "x", true));
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left - 4 * ratio, 0, bbox.width + 8 * ratio, bbox.top + bbox.height + 6 * ratio);
  ctx.clip();
  ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillStyle = themed("dim");
  for (const time of moments) ctx.fillRect(across(time), bbox.top + bbox.height - 4 * ratio, ratio, 4 * ratio);
  ctx.strokeStyle = themed("accent");
  ctx.lineWidth = 2 * ratio;
  for (const { time, name } of chosen) {
    ctx.beginPath();
    ctx.moveTo(across(time), bbox.top);
    ctx.lineTo(across(time), bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillStyle = themed("accent");
    ctx.fillText(name, across(time) + 5 * ratio, bbox.top + 8 * ratio);
  }
  if (marks.total !== null) drawTotal(made, marks.total, ratio);
  drawFailures(made, marks, ratio);
  if (peak) drawPeak(made, peak, ratio);
  ctx.restore();
}

function drawTotal(made: uPlot, total: number, ratio: number): void {
  const { ctx, bbox } = made;
  const y = Math.round(made.valToPos(total, "y", true));
  ctx.strokeStyle = ctx.fillStyle = themed("dim");
  ctx.lineWidth = ratio;
  ctx.setLineDash([6 * ratio, 4 * ratio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.fillText(`The device has ${bytesText(total)}`, bbox.left + 6 * ratio, y - 8 * ratio);
}

/** Draws the marks of failed requests. */
function drawFailures(made: uPlot, { failures, failure }: CurveMarks, ratio: number): void {
  const { ctx, bbox } = made;
  ctx.strokeStyle = ctx.fillStyle = themed("more");
  let free = Number.NEGATIVE_INFINITY;
  for (const [place, time] of failures.entries()) {
    const x = Math.round(made.valToPos(time, "x", true));
    ctx.lineWidth = (place === failure ? 2.5 : 1) * ratio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const text = "Out of memory";
    const width = ctx.measureText(text).width;
    const left = x + width + 10 * ratio > bbox.left + bbox.width ? x - width - 5 * ratio : x + 5 * ratio;
    // Of several that are close to each other, one has the label.
    if (left > free) {
      ctx.fillText(text, left, bbox.top - 5 * ratio);
      free = left + width + 8 * ratio;
    }
  }
}

function drawPeak(made: uPlot, peak: { time: number; bytes: number }, ratio: number): void {
  const { ctx, bbox } = made;
  const x = made.valToPos(peak.time, "x", true);
  const y = made.valToPos(peak.bytes, "y", true);
  const text = `Peak ${bytesText(peak.bytes)}`;
  const isRight = x + ctx.measureText(text).width + 10 * ratio > bbox.left + bbox.width;
  ctx.fillStyle = themed("more");
  ctx.beginPath();
  ctx.arc(x, y, 4 * ratio, 0, 2 * Math.PI);
  ctx.fill();
  ctx.textAlign = isRight ? "right" : "left";
  ctx.fillText(text, x + (isRight ? -8 : 8) * ratio, y - 8 * ratio);
}
