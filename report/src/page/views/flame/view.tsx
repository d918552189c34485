// The flame graph: call paths and their costs.

import { batch } from "@preact/signals";
import { ALL, type FlameLayout } from "../../../engine/flame/layout";
import type { FlameMode } from "../../../engine/flame/methods";
import { functionName } from "../../../shared/names";
import { costText, shareText } from "../../../shared/units";
import { addressed } from "../../address";
import { Choice, type Option } from "../../choice";
import { functionColours, isDark } from "../../colours";
import { query } from "../../engine";
import { head, measure, names, search, selected, selection, show } from "../../state";
import { useAnswer } from "../../use-answer";
import { FlameChart, type Skin } from "./chart";
import { boxName, describeBox, FlameTip, share } from "./tip";
import { pathText } from "./window";

type Mode = FlameMode | "time";

const mode = addressed("flame.order", "heavy");
const direction = addressed("flame.direction", "icicle");
const fold = addressed("flame.fold", "");
const zoom = { path: addressed("flame.path", "", { isStep: true }), span: addressed("flame.span", "") };

const MODES: Option<Mode>[] = [
  { value: "heavy", label: "Left-heavy", title: "The most expensive on the left" },
  { value: "met", label: "Merged", title: "Calls in the order of their first occurrence" },
  { value: "callers", label: "Bottom-up", title: "From functions with self cost up to their callers" },
];
const TIME_ORDER: Option<Mode> = { value: "time", label: "Time order", title: "Each call at its time: the timeline" };

export function FlameView() {
  const options = { mode: currentMode(), fold: fold.value !== "" };
  const of = selection.value;
  const colours = functionColours(names(), isDark());
  const counted = of.measure;
  const skin: Skin<FlameLayout> = {
    colour: ({ boxesColumns }, box) => colours[boxesColumns.function[box]!] ?? "",
    text: boxName,
    cost: (layout, box) =>
      layout.boxesColumns.function[box] === ALL
        ? costText(counted, layout.total)
        : share(layout.boxesColumns.total[box]!, layout.total),
    tip: (layout, box) => <FlameTip layout={layout} box={box} measure={counted} />,
    describe: (layout, box) => describeBox(layout, box, counted),
  };
  return (
    <div class="with-bar">
      <div class="bar">
        <Bar />
      </div>
      <div class="rest">
        <FlameChart
          label="Flame graph. Arrow keys go from box to box, Enter zooms, Backspace zooms out."
          treeKey={JSON.stringify([of, options])}
          layOut={(request) => query("flame", of, options, request)}
          zoom={zoom}
          isUpward={direction.value === "flame"}
          skin={skin}
          empty="The selection has no cost. Select other threads, another time or measure, or show more kinds of functions."
        />
      </div>
    </div>
  );
}

function currentMode(): FlameMode {
  return MODES.some((option) => option.value === mode.value) ? (mode.value as FlameMode) : "heavy";
}

/** Paths from the root and paths from the functions have nothing in common. */
function chooseMode(chosen: Mode): void {
  if (chosen === "time") {
    show("timeline");
    return;
  }
  batch(() => {
    if ((chosen === "callers") !== (currentMode() === "callers")) {
      zoom.path.value = "";
      zoom.span.value = "";
    }
    mode.value = chosen;
  });
}

function Bar() {
  const modes = head().timeline ? [...MODES, TIME_ORDER] : MODES;
  return (
    <>
      <Choice<Mode> label="Order" value={currentMode()} options={modes} choose={chooseMode} />
      <Choice
        label="Direction"
        value={direction.value}
        options={[
          { value: "icicle", label: "Icicle", title: "Callers above" },
          { value: "flame", label: "Flame", title: "Callers below" },
        ]}
        choose={(chosen) => {
          direction.value = chosen;
        }}
      />
      <button
        type="button"
        aria-pressed={fold.value !== ""}
        title="Show a function that calls itself as one box"
        onClick={() => {
          fold.value = fold.value === "" ? "on" : "";
        }}
      >
        Fold recursion
      </button>
      <ZoomToSelected />
      <FoundText />
    </>
  );
}

/** Goes to the most expensive box of the selected function. */
function ZoomToSelected() {
  const of = selected.value;
  if (of === null) return null;
  const go = async () => {
    const path = await query("flamePath", selection.value, currentMode(), of);
    if (!path) return;
    batch(() => {
      zoom.path.value = pathText(path);
      zoom.span.value = "";
    });
  };
  return (
    <button type="button" class="flame-go" title="Zoom to the most expensive box" onClick={go}>
      Zoom to <strong>{functionName(names(), of)}</strong>
    </button>
  );
}

/** Shows the cost of the functions that the search found. */
function FoundText() {
  const text = search.value.trim();
  const key = JSON.stringify([selection.value, text]);
  const { value } = useAnswer(key, async () => (text === "" ? null : query("foundCost", selection.value, text)));
  const what = measure.value === "time" ? "the time" : "the total";
  return (
    <span class="flame-found" role="status">
      {text !== "" && value && value.all > 0 && `Found in ${shareText(value.total / value.all)} of ${what}`}
    </span>
  );
}
