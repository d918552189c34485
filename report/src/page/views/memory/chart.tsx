// Memory over time, with moments to choose from.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import type { MemoryCurve } from "../../../engine/memory/methods";
import type { DeviceMemory } from "../../../shared/format";
import { bytesText, timeText } from "../../../shared/units";
import { addressed } from "../../address";
import { isDark } from "../../colours";
import { Tooltip } from "../../tooltip";
import { inMemoryFits, type Marks, plot, showInMemory } from "./plot";
import { chooseMoment, chosenMoments, compareWith, isComparing, nearestMoment, peakMoment } from "./state";

/** Whether the curve of what is in memory is shown: "on", "off", or "" if it is where it does not hide the other one. */
const residentText = addressed("memory.resident", "");

interface Hover {
  place: number;
  x: number;
  y: number;
}

export function MemoryChart({ of, curve }: { of: DeviceMemory; curve: MemoryCurve }) {
  const place = useRef<HTMLDivElement>(null);
  const made = useRef<uPlot | null>(null);
  const [hovered, setHovered] = useState<Hover | null>(null);
  const [isZoomed, setZoomed] = useState(false);
  const times = of.moments?.times ?? [];
  const { at, other } = chosenMoments();
  const marks = useRef<Marks>({ peak: null, moments: [], chosen: [] });
  marks.current = marksOf(of, at, other);
  const { time } = curve.curveColumns;
  const all: [number, number] = [time[0] ?? 0, time.at(-1) ?? 0];
  const dark = isDark();

  useEffect(() => {
    const element = place.current!;
    const chart = plot(element, curve.curveColumns, {
      marks: () => marks.current,
      hover(index) {
        const bounds = chart?.over.getBoundingClientRect();
        setHovered(
          index === null || !bounds
            ? null
            : { place: index, x: bounds.left + chart.cursor.left!, y: bounds.top + chart.cursor.top! },
        );
      },
      zoomed: (from, to) => setZoomed(from > all[0] || to < all[1]),
    });
    made.current = chart;
    const undo = onClicks(chart.over, (x, isOther) => {
      if (times.length === 0) return;
      const moment = nearestMoment(times, chart.posToVal(x, "x"));
      if (isOther || isComparing.peek()) compareWith(moment);
      else chooseMoment(moment);
    });
    const observer = new ResizeObserver(() =>
      chart.setSize({ width: Math.max(80, element.clientWidth), height: Math.max(80, element.clientHeight) }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      undo();
      chart.destroy();
      made.current = null;
    };
  }, [curve, dark, of]);
  useEffect(() => made.current?.redraw(false), [at, other]);
  const { isKnown, fits } = useMemo(() => inMemoryFits(curve.curveColumns), [curve]);
  const isShown = isKnown && (residentText.value === "" ? fits : residentText.value === "on");
  useEffect(() => {
    if (made.current) showInMemory(made.current, isShown);
  }, [isShown, curve, dark, of]);

  const zoom = (factor: number) => zoomBy(made.current, all, factor, at === null ? null : times[at]!);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "0") zoom(Number.POSITIVE_INFINITY);
    else if (!step(event, of)) return;
    event.preventDefault();
  };

  return (
    <div class="memory-time">
      <div
        class="memory-chart"
        ref={place}
        tabIndex={0}
        role="slider"
        aria-label="Memory over time. Arrow keys choose a moment, with Shift another one to compare with."
        aria-valuemin={0}
        aria-valuemax={Math.max(0, times.length - 1)}
        aria-valuenow={at ?? peakMoment(of)}
        aria-valuetext={saidMoment(of, curve, at ?? peakMoment(of))}
        onKeyDown={onKeyDown}
      />
      <p class="memory-legend">
        <span class="key taken">Taken by the program</span>
        {isKnown && (
          <button
            type="button"
            class="key resident"
            aria-pressed={isShown}
            title="Show how much memory of the process the system held"
            onClick={() => {
              residentText.value = isShown ? "off" : "on";
            }}
          >
            In memory (resident)
          </button>
        )}
        <span class="how">
          {times.length > 0
            ? "Click: what is there at that moment. Shift+click: growth from there. Drag: zoom."
            : "Drag: zoom."}
        </span>
        {at !== null && other === null && (
          <button
            type="button"
            aria-pressed={isComparing.value}
            onClick={() => {
              isComparing.value = !isComparing.value;
            }}
          >
            {isComparing.value ? "Choose another moment" : "Compare"}
          </button>
        )}
        {at !== null && other !== null && (
          <button type="button" onClick={() => chooseMoment(at)}>
            Stop comparing
          </button>
        )}
        {isZoomed && (
          <button type="button" onClick={() => zoom(Number.POSITIVE_INFINITY)}>
            Show all of the time
          </button>
        )}
      </p>
      {hovered && hovered.place < time.length && (
        <Tooltip x={hovered.x} y={hovered.y}>
          <ChartTip of={of} curve={curve} place={hovered.place} />
        </Tooltip>
      )}
    </div>
  );
}

function marksOf(of: DeviceMemory, at: number | null, other: number | null): Marks {
  const times = of.moments?.times ?? [];
  const chosen = [at, other].filter((place) => place !== null).sort((a, b) => a - b);
  return {
    peak: of.peakNs === null ? null : { time: of.peakNs, bytes: of.peak.bytes },
    moments: times,
    chosen: chosen.map((place, index) => ({ time: times[place]!, name: chosen.length > 1 ? "AB"[index]! : "" })),
  };
}

function ChartTip({ of, curve, place }: { of: DeviceMemory; curve: MemoryCurve; place: number }) {
  const { time, taken, inMemory } = curve.curveColumns;
  const below = of.peak.bytes - taken[place]!;
  return (
    <dl>
      <dt>Time</dt>
      <dd>{timeText(time[place]!)}</dd>
      <dt>Taken</dt>
      <dd>{bytesText(taken[place]!)}</dd>
      <dt>Below the peak</dt>
      <dd>{bytesText(below)}</dd>
      {!Number.isNaN(inMemory[place]!) && (
        <>
          <dt>In memory</dt>
          <dd>{bytesText(inMemory[place]!)}</dd>
        </>
      )}
    </dl>
  );
}

function saidMoment(of: DeviceMemory, curve: MemoryCurve, at: number): string {
  const times = of.moments?.times ?? [];
  if (times.length === 0) return `Peak ${bytesText(of.peak.bytes)}`;
  const bytes = bytesText(curve.momentsColumns.bytes[at] ?? 0);
  return `Moment ${at + 1} of ${times.length}, at ${timeText(times[at]!)}: ${bytes}`;
}

/** Goes to the next moment, or with Shift changes the one that is compared with. */
function step(event: KeyboardEvent, of: DeviceMemory): boolean {
  const count = of.moments?.times.length ?? 0;
  const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, Home: -count, End: count };
  const by = steps[event.key];
  if (by === undefined || count === 0) return false;
  const { at, other } = chosenMoments();
  const from = (event.shiftKey ? (other ?? at) : at) ?? peakMoment(of);
  const next = Math.min(count - 1, Math.max(0, from + by));
  if (event.shiftKey && at === null) chooseMoment(peakMoment(of));
  if (event.shiftKey) compareWith(next);
  else chooseMoment(at === null && other === null && Math.abs(by) === 1 ? from : next);
  return true;
}

/** Presses that do not end elsewhere: those are selections of a time. */
function onClicks(element: HTMLElement, click: (x: number, isOther: boolean) => void): () => void {
  let pressedAt = Number.NaN;
  const down = (event: MouseEvent) => {
    pressedAt = event.clientX;
  };
  const up = (event: MouseEvent) => {
    if (event.button !== 0 || Math.abs(event.clientX - pressedAt) > 4) return;
    click(event.clientX - element.getBoundingClientRect().left, event.shiftKey);
  };
  element.addEventListener("mousedown", down);
  element.addEventListener("click", up);
  return () => {
    element.removeEventListener("mousedown", down);
    element.removeEventListener("click", up);
  };
}

/** Shows so many times the time that is shown now, around a time or the middle; never more than all. */
function zoomBy(chart: uPlot | null, [first, last]: [number, number], factor: number, around: number | null): void {
  const { min, max } = chart?.scales.x ?? {};
  if (!chart || min == null || max == null) return;
  const length = Math.max(1, (max - min) * factor);
  const middle = around !== null && around >= min && around <= max ? around : (min + max) / 2;
  if (length >= last - first) chart.setScale("x", { min: first, max: last });
  else {
    const from = Math.min(Math.max(first, middle - length / 2), last - length);
    chart.setScale("x", { min: from, max: from + length });
  }
}
