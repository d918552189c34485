// The selected memory by call path, function or line, or as segments.

import { batch } from "@preact/signals";
import { ALL, type FlameLayout } from "../../../engine/flame/layout";
import type { MemoryQuestion } from "../../../engine/memory/methods";
import type { DeviceMemory } from "../../../shared/format";
import { bytesText } from "../../../shared/units";
import { addressed } from "../../address";
import { Choice, type Option } from "../../choice";
import { functionColours, isDark } from "../../colours";
import { query } from "../../engine";
import { measureText, names, selection, show, threads } from "../../state";
import { FlameChart, type Skin } from "../flame/chart";
import { boxName, describeBox, FlameTip, share } from "../flame/tip";
import { MemoryFlat } from "./flat";
import { MemoryPaths } from "./paths";
import { part, partWords } from "./state";

type By = "paths" | "functions" | "lines" | "icicle";

const OPTIONS: Option<By>[] = [
  { value: "paths", label: "Call paths", title: "Call paths from the outermost function" },
  { value: "functions", label: "Functions", title: "Allocated by each function itself" },
  { value: "lines", label: "Lines", title: "Allocated by each line itself" },
  { value: "icicle", label: "Icicle", title: "Call paths as a picture" },
];
const byText = addressed("memory.by", "paths");
const zoom = { path: addressed("memory.path", ""), span: addressed("memory.span", "") };

export function MemoryContent({ of }: { of: DeviceMemory }) {
  const now = part();
  const question: MemoryQuestion = { selection: { ...selection.value, device: of.device, range: null }, part: now };
  const by = OPTIONS.find((option) => option.value === byText.value)?.value ?? "paths";
  const words = partWords(now, of.moments?.times ?? []);
  return (
    <section class="memory-content">
      <div class="bar">
        <h2>{words}</h2>
        <Choice<By>
          label="Show by"
          value={by}
          options={OPTIONS}
          choose={(chosen) => {
            byText.value = chosen;
          }}
        />
        {now.kind === "measure" && (
          <button
            type="button"
            onClick={() =>
              batch(() => {
                measureText.value = now.measure;
                show("flame");
              })
            }
          >
            Open in the flame graph
          </button>
        )}
      </div>
      {now.kind !== "measure" && threads.value !== null && (
        <p class="nothing">Live memory at a moment is not recorded by thread: this is the memory of all threads.</p>
      )}
      {now.kind === "growth" && (
        <p class="nothing">
          Added and freed are sums over call paths: memory that a path allocated and freed in between is in neither.
        </p>
      )}
      {by === "paths" && <MemoryPaths question={question} label={words} />}
      {(by === "functions" || by === "lines") && <MemoryFlat question={question} by={by} label={words} />}
      {by === "icicle" && <Icicle question={question} words={words} />}
    </section>
  );
}

function Icicle({ question, words }: { question: MemoryQuestion; words: string }) {
  const colours = functionColours(names(), isDark());
  const skin: Skin<FlameLayout> = {
    colour: ({ boxesColumns }, box) => colours[boxesColumns.function[box]!] ?? "",
    text: boxName,
    cost: ({ boxesColumns, total }, box) =>
      boxesColumns.function[box] === ALL ? bytesText(total) : share(boxesColumns.total[box]!, total),
    tip: (layout, box) => <FlameTip layout={layout} box={box} measure="peak" />,
    describe: (layout, box) => describeBox(layout, box, "peak"),
  };
  return (
    <div class="memory-icicle">
      <FlameChart
        label={`${words}. Arrow keys go from box to box, Enter zooms, Backspace zooms out.`}
        treeKey={JSON.stringify(question)}
        layOut={(request) => query("memoryFlame", question, request)}
        zoom={zoom}
        isUpward={false}
        skin={skin}
        empty="The selection allocated no memory."
      />
    </div>
  );
}
