// Memory over time, and what it was made of.

import { bytesText } from "../../../shared/units";
import { useAnswer } from "../../answer";
import { Choice } from "../../choice";
import { ask } from "../../engine";
import { Problem } from "../../problem";
import { head } from "../../state";
import { MemoryCards } from "./cards";
import { MemoryChart } from "./chart";
import { MemoryContent } from "./content";
import { MemoryGroups } from "./groups";
import { device, deviceText } from "./state";

export function MemoryView() {
  const { devices, sampleEvery } = head().memory!;
  const of = device();
  const { value, error } = useAnswer(String(of.device), async () => ({
    device: of.device,
    curve: await ask("memoryCurve", of.device),
  }));
  // What was asked for another memory is of no use for this one.
  const curve = value?.device === of.device ? value.curve : undefined;
  return (
    <div class="memory">
      {devices.length > 1 && (
        <div class="bar">
          <Choice
            label="Whose memory"
            value={String(of.device)}
            options={devices.map((each) => ({ value: String(each.device), label: each.label }))}
            choose={(chosen) => {
              deviceText.value = chosen;
            }}
          />
        </div>
      )}
      {sampleEvery !== null && (
        <p class="remark">
          These are estimates: of about every {bytesText(sampleEvery)} that were allocated one block was recorded, and
          stands for the others.
        </p>
      )}
      <MemoryCards of={of} totals={curve?.momentsColumns.bytes} />
      {error && <Problem what="The curve can't be drawn" why={error} />}
      {of.moments === null && (
        <p class="remark">
          This recording has sums and no history, so what was taken{" "}
          {of.curve === null ? "when" : "at other moments than the peak"} is not known. Record without{" "}
          <code>--aggregate</code> to see it.
        </p>
      )}
      {curve && curve.curveColumns.time.length > 0 && <MemoryChart of={of} curve={curve} />}
      <MemoryContent of={of} />
      <MemoryGroups of={of} />
    </div>
  );
}
