// Failed requests: their times, sizes and stacks.

import { useState } from "preact/hooks";
import type { DeviceMemory, FailureInfo } from "../../../shared/format";
import { poolWords } from "../../../shared/memory";
import { bytesText, countText, timeText } from "../../../shared/units";
import { head } from "../../state";
import { StackList } from "./stack";
import { chooseFailure, chooseMoment, failure, nearestMoment } from "./state";

/** The number of requests that are shown at first. */
const FEW = 6;

export function Failures({ of }: { of: DeviceMemory }) {
  const [isAll, setAll] = useState(false);
  const host = of.host;
  if (!host || host.failures.length === 0) return null;
  const opened = failure(of);
  // The request that was selected on the curve is always shown.
  const shown = isAll || (opened ?? 0) >= FEW ? host.failures : host.failures.slice(0, FEW);
  const left = host.failureCount - shown.length;
  return (
    <section class="memory-failures" aria-label="Out of memory">
      <h2>
        Out of memory{" "}
        <span class="about">
          {countText(host.failureCount)} {host.failureCount === 1 ? "request" : "requests"} could not be met
        </span>
      </h2>
      <ul>
        {shown.map((failed, place) => (
          <li key={`${failed.timeNs} ${failed.stack}`}>
            <Failure of={of} failed={failed} place={place} isOpen={opened === place} />
          </li>
        ))}
      </ul>
      {left > 0 && shown.length < host.failures.length && (
        <button type="button" onClick={() => setAll(true)}>
          Show {countText(host.failures.length - shown.length)} more
        </button>
      )}
      {host.failureCount > host.failures.length && (
        <p class="nothing">{countText(host.failureCount - host.failures.length)} later ones are not in the report.</p>
      )}
    </section>
  );
}

interface Properties {
  of: DeviceMemory;
  failed: FailureInfo;
  place: number;
  isOpen: boolean;
}

function Failure({ of, failed, place, isOpen }: Properties) {
  const times = of.moments?.times ?? [];
  const { processes } = head();
  const where = [
    of.host!.pools.length > 1 && poolWords(failed.pool),
    processes.length > 1 && `process ${processes[failed.process]?.pid}`,
  ].filter(Boolean);
  return (
    <>
      <button
        type="button"
        class="memory-failure"
        aria-expanded={isOpen}
        title="Stack of the request"
        onClick={() => chooseFailure(isOpen ? null : place)}
      >
        <span class="twist" aria-hidden="true">
          {isOpen ? "▾" : "▸"}
        </span>
        <strong>{bytesText(failed.size)}</strong>
        <span>
          requested at {timeText(failed.timeNs)}; the device had {bytesText(failed.free)} free
          {where.length > 0 && `; ${where.join(", ")}`}
        </span>
      </button>
      {isOpen && (
        <div class="memory-failure-open">
          <StackList device={of.device} node={failed.stack} />
          {times.length > 0 && (
            <button type="button" onClick={() => chooseMoment(nearestMoment(times, failed.timeNs))}>
              Live memory at that time
            </button>
          )}
        </div>
      )}
    </>
  );
}
