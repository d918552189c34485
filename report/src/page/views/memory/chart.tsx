// Memory over time, with moments to select.

import { Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import type { MemoryCurve } from "../../../engine/memory/methods";
import type { DeviceMemory } from "../../../shared/format";
import { bytesText, timeText } from "../../../shared/units";
import { isDark } from "../../colours";
import { Tooltip } from "../../tooltip";
import { type OtherCurve, otherCurves } from "./curves";
import { Legend } from "./legend";
import { nearestMark } from "./marks";
import { type CurveMarks, plot, showSeries } from "./plot";
import {
  chooseFailure,
  chooseMoment,
  chosenMoments,
  compareWith,
  failure,
  isComparing,
  nearestMoment,
  peakMoment,
} from "./state";

/** The total of a device is visible if reserved memory reaches this share of it. */
const NEAR_TOTAL = 0.6;

interface HoveredTime {
  place: number;
  x: number;
  y: number;
}

interface Properties {
  of: DeviceMemory;
  /** The pool of the curve; `null` for all memory. */
  pool: number | null;
  curve: MemoryCurve;
}

export function MemoryChart({ of, pool, curve }: Properties) {
  const place = useRef<HTMLDivElement>(null);
  const made = useRef<uPlot | null>(null);
  const [hovered, setHovered] = useState<HoveredTime | null>(null);
  const [isZoomed, setZoomed] = useState(false);
  const times = of.moments?.times ?? [];
  const { at, other } = chosenMoments();
  const marks = useRef<CurveMarks>(NO_MARKS);
  marks.current = marksOf(of, pool, at, other);
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
      const places = marks.current.failures.map((time) => chart.valToPos(time, "x"));
      const failed = nearestMark(places, x);
      if (failed !== null) chooseFailure(failed);
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
  useEffect(() => made.current?.redraw(false), [at, other, failure(of)]);
  const curves = otherCurves(curve.curveColumns);
  const shown = curves.filter((other) => other.isShown).map((other) => other.series);
  useEffect(() => {
    for (const { series, isShown } of curves) if (made.current) showSeries(made.current, series, isShown);
  }, [shown.join(), curve, dark, of]);

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
        aria-valuetext={describeMoment(of, curve, at ?? peakMoment(of))}
        onKeyDown={onKeyDown}
      />
      <Legend
        curves={curves}
        hasMoments={times.length > 0}
        hasFailures={marks.current.failures.length > 0}
        isZoomed={isZoomed}
        showAll={() => zoom(Number.POSITIVE_INFINITY)}
      />
      {hovered && hovered.place < time.length && (
        <Tooltip x={hovered.x} y={hovered.y}>
          <ChartTip curve={curve} curves={curves} place={hovered.place} peak={marks.current.peak?.bytes ?? null} />
        </Tooltip>
      )}
    </div>
  );
}

const NO_MARKS: CurveMarks = { peak: null, moments: [], chosen: [], failures: [], failure: null, total: null };

function marksOf(of: DeviceMemory, pool: number | null, at: number | null, other: number | null): CurveMarks {
  const times = of.moments?.times ?? [];
  const { host } = of;
  const chosen = [at, other].filter((place) => place !== null).sort((a, b) => a - b);
  const whole = of.peakNs === null ? null : { time: of.peakNs, bytes: of.peak.bytes };
  const ofPool = pool === null ? undefined : host?.pools[pool]?.peak;
  const isNear = pool === null && host?.total && host.reservedPeak.reserved >= NEAR_TOTAL * host.total;
  return {
    peak: ofPool ? { time: ofPool.timeNs, bytes: ofPool.taken } : whole,
    moments: times,
    chosen: chosen.map((place, index) => ({ time: times[place]!, name: chosen.length > 1 ? "AB"[index]! : "" })),
    failures: host?.failures.map((failed) => failed.timeNs) ?? [],
    failure: failure(of),
    total: isNear ? host.total : null,
  };
}

interface TipProperties {
  curve: MemoryCurve;
  curves: OtherCurve[];
  place: number;
  peak: number | null;
}

const TIP_WORDS: Record<string, string> = { resident: "Resident", pending: "Pending frees", reserved: "Reserved" };

function ChartTip({ curve, curves, place, peak }: TipProperties) {
  const { time, taken } = curve.curveColumns;
  return (
    <dl>
      <dt>Time</dt>
      <dd>{timeText(time[place]!)}</dd>
      <dt>Live</dt>
      <dd>{bytesText(taken[place]!)}</dd>
      {peak !== null && (
        <>
          <dt>Below the peak</dt>
          <dd>{bytesText(peak - taken[place]!)}</dd>
        </>
      )}
      {curves.map(
        ({ name, bytes }) =>
          !Number.isNaN(bytes[place]!) && (
            <Fragment key={name}>
              <dt>{TIP_WORDS[name]}</dt>
              <dd>{bytesText(bytes[place]!)}</dd>
            </Fragment>
          ),
      )}
    </dl>
  );
}

function describeMoment(of: DeviceMemory, curve: MemoryCurve, at: number): string {
  const times = of.moments?.times ?? [];
  if (times.length === 0) return `Peak ${bytesText(of.peak.bytes)}`;
  const bytes = bytesText(curve.momentsColumns.bytes[at] ?? 0);
  return `Moment ${at + 1} of ${times.length}, at ${timeText(times[at]!)}: ${bytes}`;
}

/** Selects the next moment, or with Shift the next moment to compare with. */
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

/** Presses without movement; the others select a time. */
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

/** Zooms by a factor around a time or the centre, at most to the whole time. */
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
