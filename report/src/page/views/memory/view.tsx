// Memory over time, and the code that allocated it.

import type { DeviceMemory } from "../../../shared/format";
import { poolWords } from "../../../shared/memory";
import { bytesText } from "../../../shared/units";
import { Choice } from "../../choice";
import { query } from "../../engine";
import { Problem } from "../../problem";
import { chooseDevice, head, poolText } from "../../state";
import { useAnswer } from "../../use-answer";
import { MemoryCards } from "./cards";
import { MemoryChart } from "./chart";
import { MemoryContent } from "./content";
import { Failures } from "./failures";
import { Fragments } from "./fragments";
import { MemoryGroups } from "./groups";
import { device, pool } from "./state";

export function MemoryView() {
  const { devices, sampleEvery } = head().memory!;
  const of = device();
  const ofPool = pool(of);
  const key = `${of.device} ${ofPool}`;
  const { value, error } = useAnswer(key, async () => ({ key, curve: await query("memoryCurve", of.device, ofPool) }));
  // An answer about another device's memory is not valid for this one.
  const curve = value?.key === key ? value.curve : undefined;
  return (
    <div class="memory">
      {(devices.length > 1 || of.host !== null) && (
        <div class="bar">
          {devices.length > 1 ? (
            <Choice
              label="Memory of"
              value={String(of.device)}
              options={devices.map((each) => ({ value: String(each.device), label: each.label }))}
              choose={chooseDevice}
            />
          ) : (
            <h2>{of.label}</h2>
          )}
          <Pools of={of} />
        </div>
      )}
      {sampleEvery !== null && (
        <p class="remark">
          These are estimates: one block for each {bytesText(sampleEvery)} of allocated memory was recorded, on average.
        </p>
      )}
      <MemoryCards of={of} totals={curve?.momentsColumns.bytes} />
      {error && <Problem what="The curve can't be drawn" why={error} />}
      {of.moments === null && (
        <p class="remark">
          This recording has sums and no history, so live memory{" "}
          {of.curve === null ? "when" : "at other moments than the peak"} is not known. Record without{" "}
          <code>--mode aggregate</code> to see it.
        </p>
      )}
      {curve && curve.curveColumns.time.length > 0 && <MemoryChart of={of} pool={ofPool} curve={curve} />}
      {ofPool !== null && <p class="nothing">The curve shows one pool; the figures below are for all pools.</p>}
      <Failures key={of.device} of={of} />
      <MemoryContent of={of} />
      <Fragments key={of.device} of={of} />
      <MemoryGroups of={of} />
    </div>
  );
}

/** Shows the choice of the pool of the curve. */
function Pools({ of }: { of: DeviceMemory }) {
  const pools = of.host?.pools ?? [];
  if (pools.length < 2) return null;
  return (
    <select
      aria-label="Pool of the curve"
      value={poolText.value}
      onChange={(event) => {
        poolText.value = event.currentTarget.value;
      }}
    >
      <option value="">All {pools.length} pools</option>
      {pools.map((each, place) => (
        <option key={each.name} value={String(place)}>
          {poolWords(each.name)} (peak {bytesText(each.peak.taken)})
        </option>
      ))}
    </select>
  );
}
