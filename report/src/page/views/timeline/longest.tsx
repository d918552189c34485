// The timeline as a table: the longest spans in the visible time.

import { useEffect, useState } from "preact/hooks";
import { placeOf, shortPath } from "../../../shared/names";
import { momentText, timeText } from "../../../shared/units";
import { query } from "../../engine";
import { filter, head, names, select } from "../../state";
import { useAnswer } from "../../use-answer";
import { threadName } from "./frame";
import { fitFocus, moveTo, pickedOf, tracksShown } from "./keys";
import { focus, type TimeRange, visible } from "./state";
import { endText, nameOf } from "./track-text";

/** Returns the window, once it has not moved for a moment. */
function useSettled(): TimeRange {
  const now = visible.value;
  const [settled, setSettled] = useState(now);
  useEffect(() => {
    const later = setTimeout(() => setSettled(now), 200);
    return () => clearTimeout(later);
  }, [now.from, now.to]);
  return settled;
}

export function LongestSpans() {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="longest" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Longest visible spans</summary>
      {isOpen && <Longest />}
    </details>
  );
}

function Longest() {
  const span = useSettled();
  const tracks = tracksShown();
  const track = focus.value?.track ?? tracks[0];
  const key = JSON.stringify([tracks, span, filter.value, track]);
  const { value, error } = useAnswer(key, async () => ({
    longest: await query("timelineLongest", tracks, span, filter.value),
    around: track === undefined ? [] : await query("timelineAround", track, span),
  }));
  if (error) return <p class="dim">The spans can't be shown: {error}.</p>;
  if (!value) return <p role="status">Searching…</p>;
  const around = value.around.map((frame) => nameOf(names(), frame + 1));
  return (
    <>
      {around.length > 0 && track !== undefined && (
        <p class="around">
          All of this time {threadName(head(), head().timeline!.tracks[track]!.thread)} is in{" "}
          {around.length > 6
            ? `${around.slice(0, 2).join(" › ")} › … › ${around.slice(-3).join(" › ")}`
            : around.join(" › ")}
          .
        </p>
      )}
      {value.longest.length === 0 ? (
        <p class="dim">No span begins or ends in this time. Zoom out (S) or press 0 for all of it.</p>
      ) : (
        <Table spans={value.longest} />
      )}
    </>
  );
}

function Table({ spans }: { spans: Awaited<ReturnType<typeof query<"timelineLongest">>> }) {
  const known = names();
  return (
    <table>
      <caption class="hidden-text">The {spans.length} longest spans that begin or end in the visible time</caption>
      <thead>
        <tr>
          <th scope="col">Function</th>
          <th scope="col" class="number">
            Takes
          </th>
          <th scope="col" class="number">
            Begins
          </th>
          <th scope="col">Thread</th>
          <th scope="col">Place</th>
        </tr>
      </thead>
      <tbody>
        {spans.map((span) => {
          const of = known.frames.function[span.frame]!;
          const end = endText(span.flags);
          return (
            <tr key={`${span.block} ${span.row}`}>
              <td>
                <button
                  type="button"
                  class="link"
                  title="Select it, and zoom to it"
                  onClick={() => {
                    select(of);
                    moveTo(pickedOf(span));
                    fitFocus();
                  }}
                >
                  {nameOf(known, span.frame + 1)}
                </button>
                {end && <span class="failed"> {end}</span>}
              </td>
              <td class="number">{timeText(span.extent)}</td>
              <td class="number">{momentText(span.begin, 1e3)}</td>
              <td>{threadName(head(), head().timeline!.tracks[span.track]!.thread)}</td>
              <td class="dim" title={placeOf(known, of)}>
                {shortPath(placeOf(known, of), 48)}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
