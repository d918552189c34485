// The activity of each thread over time: all threads as tracks, from hours to nanoseconds.

import { useEffect } from "preact/hooks";
import type { FunctionIndex } from "../../../shared/format";
import { functionName } from "../../../shared/names";
import { countText } from "../../../shared/units";
import { Canvas } from "../../canvas";
import { isDark } from "../../colours";
import { Problem } from "../../problem";
import { useFound } from "../../search-results";
import { filter, head, names, range, search, selected, threads } from "../../state";
import { arrived, problem } from "./data";
import type { DrawingStyle } from "./drawing-style";
import { findNext, fitFocus, onTimelineKey, rangeOfWindow } from "./keys";
import { LongestSpans } from "./longest";
import { pointerEvents } from "./pointer";
import { drawTimeline } from "./scene";
import { band, focus, hovered, lookAtAll, message, opened, scroll, visible, zoom } from "./state";
import { TimelineTip } from "./tip";

export function TimelineView() {
  useEffect(
    () => () => {
      hovered.value = null;
    },
    [],
  );
  if (head().timeline === null || head().timeline!.tracks.length === 0) {
    return (
      <p class="problem">
        This recording has no spans, so there is no timeline. Record calls with <code>stackweave trace</code> to get
        one.
      </p>
    );
  }
  return (
    <div class="timeline with-bar">
      <TimelineBar />
      <div class="rest">
        <TimelineCanvas />
      </div>
      <TimelineTip />
      <LongestSpans />
    </div>
  );
}

function TimelineBar() {
  const of = selected.value;
  const isHiding = !(filter.value.python && filter.value.native && filter.value.libraries && filter.value.internals);
  return (
    <div class="bar" role="toolbar" aria-label="Timeline">
      <span class="choice">
        <button type="button" title="Zoom in (W)" aria-label="Zoom in" onClick={() => zoom(0.5)}>
          +
        </button>
        <button type="button" title="Zoom out (S)" aria-label="Zoom out" onClick={() => zoom(2)}>
          −
        </button>
        <button type="button" title="Show the whole recording (0)" onClick={lookAtAll}>
          All
        </button>
        <button type="button" title="Show the focused span (F)" disabled={!focus.value} onClick={fitFocus}>
          Fit
        </button>
      </span>
      <button type="button" title="Select the visible time in all views (M)" onClick={rangeOfWindow}>
        Use as range
      </button>
      {of !== null && (
        <span class="choice">
          <button
            type="button"
            title="The previous span of the selected function (P)"
            onClick={() => void findNext(-1)}
          >
            ‹ Previous
          </button>
          <button type="button" title="The next span of the selected function (N)" onClick={() => void findNext(1)}>
            Next ›
          </button>
        </span>
      )}
      <output class="summary" aria-live="polite">
        {problem.value ? (
          <Problem what="The timeline can't be read" why={problem.value} />
        ) : (
          message.value || hint(of, isHiding)
        )}
      </output>
    </div>
  );
}

function hint(of: FunctionIndex | null, isHiding: boolean): string {
  if (of !== null && of < names().functions.name.length) {
    return `All spans of ${functionName(names(), of)} are outlined. N goes to the next one, P to the previous one.`;
  }
  const isTouched = matchMedia("(pointer: coarse)").matches;
  const keys = isTouched
    ? "Drag to move, pinch to zoom."
    : "Drag to move, Ctrl + wheel to zoom, Shift + drag to choose a range.";
  return isHiding ? `${keys} Hidden functions are dimmed.` : keys;
}

let searches = 0;
let lastFound: Uint8Array | null = null;

function useDrawingStyle(): DrawingStyle {
  const found = useFound();
  if (found !== lastFound) {
    lastFound = found;
    searches++;
  }
  const dark = isDark();
  const key = JSON.stringify([filter.value, dark, search.value === "" ? 0 : searches]);
  return { names: names(), filter: filter.value, found, isDark: dark, key };
}

function TimelineCanvas() {
  const style = useDrawingStyle();
  const shown = {
    style,
    visible: visible.value,
    scroll: scroll.value,
    range: range.value,
    band: band.value,
    selected: selected.value,
    focus: focus.value,
  };
  // Each of these changes the picture.
  void [arrived.value, opened.value, threads.value];
  const tracks = head().timeline!.tracks.length;
  const label = `Timeline of ${countText(tracks)} ${tracks === 1 ? "thread" : "threads"}. Arrows move, plus and minus zoom, N and P go through the spans of the selected function.`;
  return (
    <Canvas
      label={label}
      draw={(surface) => drawTimeline(surface, shown)}
      events={{ ...pointerEvents, onKeyDown: onTimelineKey }}
    />
  );
}
