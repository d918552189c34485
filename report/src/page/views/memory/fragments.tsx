// The state of an allocator: its reserved memory, the used part of it, and the fragmentation of the rest.

import type { DeviceMemory, SegmentState } from "../../../shared/format";
import { fragmentation, poolWords } from "../../../shared/memory";
import { bytesText, countText, exactShareText, timeText } from "../../../shared/units";
import { query } from "../../engine";
import { Problem } from "../../problem";
import { head } from "../../state";
import { useAnswer } from "../../use-answer";
import { Segments } from "./segments";

const WORDS: Record<SegmentState["reason"], string> = {
  end: "at the end of the recording",
  failure: "when memory ran out",
  requested: "at the program's request",
};

export function Fragments({ of }: { of: DeviceMemory }) {
  return (
    <>
      {of.host?.states.map((state, place) => (
        <Account key={state.process} of={of} state={state} place={place} />
      ))}
    </>
  );
}

function Account({ of, state, place }: { of: DeviceMemory; state: SegmentState; place: number }) {
  const { value, error } = useAnswer(`${of.device} ${place}`, async () => ({
    device: of.device,
    columns: await query("memorySegments", of.device, place),
  }));
  const columns = value?.device === of.device ? value.columns : null;
  const { processes } = head();
  const pid = processes.length > 1 ? ` of process ${processes[state.process]?.pid}` : "";
  return (
    <section class="memory-account" aria-label={`Segments${pid}`}>
      <h2>
        Segments{pid}{" "}
        <span class="about">
          {WORDS[state.reason]}, at {timeText(state.timeNs)}
        </span>
      </h2>
      <Figures state={state} />
      <Parts state={state} />
      {state.pools.length > 1 && <Pools state={state} />}
      {error && <Problem what="The segments can't be drawn" why={error} />}
      {columns && <Segments device={of.device} state={state} columns={columns} />}
      {state.leftOut > 0 && <p class="nothing">{countText(state.leftOut)} segments are not in the picture.</p>}
    </section>
  );
}

function Figures({ state }: { state: SegmentState }) {
  const scattered = fragmentation([state]);
  return (
    <dl class="memory-figures">
      <Figure name="Reserved" value={bytesText(state.reserved)} about={`${countText(state.segments)} segments`} />
      <Figure
        name="In use"
        value={bytesText(state.allocated)}
        about={`${bytesText(state.allocated - state.requested)} of it is rounding`}
      />
      {state.pending > 0 && <Figure name="Pending frees" value={bytesText(state.pending)} about="not free yet" />}
      <Figure name="Free in segments" value={bytesText(state.free)} about={share(state.free, state.reserved)} />
      <Figure name="Largest free block" value={bytesText(state.largestFree)} about="the largest request that fits" />
      <Figure
        name="Fragmentation"
        value={scattered === null ? "–" : exactShareText(scattered)}
        about={scattered === null ? "nothing is free" : "of the free memory is outside the largest free block"}
      />
    </dl>
  );
}

function share(part: number, all: number): string {
  return all > 0 ? `${exactShareText(part / all)} of reserved memory` : "";
}

function Figure({ name, value, about }: { name: string; value: string; about: string }) {
  return (
    <div class="memory-figure">
      <dt>{name}</dt>
      <dd>
        <strong>{value}</strong>
        <span class="about">{about}</span>
      </dd>
    </div>
  );
}

/** Shows reserved memory as one bar. */
function Parts({ state }: { state: SegmentState }) {
  const parts = [
    ["taken", state.requested],
    ["rounding", state.allocated - state.requested],
    ["pending", state.pending],
    ["free", state.free],
  ] as const;
  return (
    <div class="memory-parts" aria-hidden="true">
      {parts.map(([name, bytes]) => bytes > 0 && <span key={name} class={name} style={{ flexGrow: bytes }} />)}
    </div>
  );
}

function Pools({ state }: { state: SegmentState }) {
  return (
    <table class="memory-table pools" aria-label="Segments by pool">
      <thead>
        <tr>
          <th scope="col">Pool</th>
          <th scope="col">Reserved</th>
          <th scope="col">In use</th>
          <th scope="col">Free</th>
        </tr>
      </thead>
      <tbody>
        {state.pools.map((pool) => (
          <tr key={pool.name}>
            <th scope="row">{poolWords(pool.name)}</th>
            <td>{bytesText(pool.reserved)}</td>
            <td>{bytesText(pool.allocated)}</td>
            <td>{bytesText(pool.free)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
