// The curve of memory as uPlot draws it.

import uPlot from "uplot";
import type { CurveColumns } from "../../../engine/memory/curve";
import { bytesText, timeText } from "../../../shared/units";

/** What is marked on the curve. */
export interface Marks {
  peak: { time: number; bytes: number } | null;
  /** Times of all moments, and those that are chosen. */
  moments: number[];
  chosen: { time: number; name: string }[];
}

export interface PlotEvents {
  marks(): Marks;
  /** The pointer is at this place of the data, or at none. */
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
  const options: uPlot.Options = {
    width: Math.max(80, place.clientWidth),
    height: Math.max(80, place.clientHeight),
    padding: [14, 26, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false, dist: 5 }, points: { size: 7 } },
    scales: { x: { time: false }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] } },
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
      { stroke: themed("python"), width: 1.5, fill: `${themed("python")}2e`, points: { show: false } },
      { stroke: themed("native"), width: 1.5, points: { show: false }, spanGaps: true, show: false },
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
  return new uPlot(options, [data.time, data.taken, known] as unknown as uPlot.AlignedData, place);
}

function isKnown(bytes: number): boolean {
  return !Number.isNaN(bytes);
}

/** The place of what is in memory among the series. */
const IN_MEMORY = 2;
/** What the program took is still to be seen if what is in memory is not more than so many times that. */
const AS_LARGE = 8;

/** Whether what is in memory is known at all, and whether its curve leaves room for the other one. */
export function inMemoryFits({ taken, inMemory }: CurveColumns): { isKnown: boolean; fits: boolean } {
  const most = (column: Float64Array) =>
    column.reduce((high, bytes) => (isKnown(bytes) ? Math.max(high, bytes) : high), 0);
  return { isKnown: inMemory.some(isKnown), fits: most(inMemory) <= AS_LARGE * most(taken) };
}

export function showInMemory(made: uPlot, isShown: boolean): void {
  made.setSeries(IN_MEMORY, { show: isShown });
}

function drawMarks(made: uPlot, { peak, moments, chosen }: Marks): void {
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
  if (peak) drawPeak(made, peak, ratio);
  ctx.restore();
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
