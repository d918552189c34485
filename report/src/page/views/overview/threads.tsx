// Processes and threads; a click selects one thread.

import { useState } from "preact/hooks";
import type { ThreadIndex } from "../../../shared/format";
import { costText, countText, MEASURE_LABELS, shareText, timeText } from "../../../shared/units";
import { chooseThreads, threads as chosen, head, measure, selection } from "../../state";

/** The number of threads that are shown at first. */
const FEW = 12;

/** Returns the cost of each thread, in the whole recording. */
function costs(): Float64Array {
  const { trees, threads } = head();
  const sums = new Float64Array(threads.length);
  const stored = measure.value === "allocations" ? "bytes" : measure.value;
  for (const tree of trees) {
    const isIt = tree.side === "after" && tree.measure === stored && tree.device === selection.value.device;
    if (isIt && tree.thread !== null) sums[tree.thread]! += tree.total;
  }
  return sums;
}

export function Threads() {
  const [isAll, setAll] = useState(false);
  const { threads, processes } = head();
  if (threads.length === 0) return null;
  const sums = costs();
  const all = sums.reduce((sum, cost) => sum + cost, 0);
  const order = [...threads.keys()].sort((a, b) => sums[b]! - sums[a]! || a - b);
  const shownMeasure = measure.value === "allocations" ? "bytes" : measure.value;
  return (
    <section class="card threads">
      <h2>{processes.length > 1 ? "Processes and threads" : "Threads"}</h2>
      {processes.length > 1 && <Processes />}
      <div class="wide">
        <table>
          <thead>
            <tr>
              <th scope="col">Thread</th>
              {processes.length > 1 && <th scope="col">Process</th>}
              <th scope="col" class="number">
                Id
              </th>
              <th scope="col" class="number">
                {MEASURE_LABELS[shownMeasure]}
              </th>
            </tr>
          </thead>
          <tbody>
            {order.slice(0, isAll ? order.length : FEW).map((thread) => (
              <tr key={thread} aria-selected={chosen.value?.includes(thread) ?? false}>
                <td>
                  <ThreadButton thread={thread} />
                </td>
                {processes.length > 1 && <td>{processes[threads[thread]!.process]?.pid}</td>}
                <td class="number">{threads[thread]!.tid}</td>
                <td class="number cost">
                  <span class="fill" style={{ width: `${all > 0 ? (100 * sums[thread]!) / all : 0}%` }} />
                  <span class="amount">{costText(shownMeasure, sums[thread]!)}</span>
                  <span class="share">{all > 0 ? shareText(sums[thread]! / all) : ""}</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {order.length > FEW && !isAll && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {countText(order.length)} threads
        </button>
      )}
    </section>
  );
}

function ThreadButton({ thread }: { thread: ThreadIndex }) {
  const isChosen = chosen.value?.length === 1 && chosen.value[0] === thread;
  return (
    <button
      type="button"
      class="quiet"
      aria-pressed={isChosen}
      title={isChosen ? "Select all threads" : "Select only this thread, in all views"}
      onClick={() => chooseThreads(isChosen ? null : [thread])}
    >
      {head().threads[thread]!.name || "thread"}
    </button>
  );
}

function Processes() {
  const { processes } = head();
  const end = Math.max(1, ...processes.map((process) => process.endedNs));
  return (
    <div class="wide">
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">
              Process
            </th>
            <th scope="col">Program</th>
            <th scope="col">Time</th>
            <th scope="col" class="number">
              Took
            </th>
            <th scope="col" class="number">
              Events
            </th>
          </tr>
        </thead>
        <tbody>
          {processes.map((process) => (
            <tr key={process.pid}>
              <td class="number">{process.pid}</td>
              <td class="what" title={process.title}>
                {process.title}
              </td>
              <td class="when" title={`from ${timeText(process.beganNs)} to ${timeText(process.endedNs)}`}>
                <span
                  class="span"
                  style={{
                    left: `${(100 * process.beganNs) / end}%`,
                    width: `${(100 * (process.endedNs - process.beganNs)) / end}%`,
                  }}
                />
              </td>
              <td class="number">{timeText(process.endedNs - process.beganNs)}</td>
              <td class="number">{countText(process.events)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
