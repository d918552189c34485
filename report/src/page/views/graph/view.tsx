// The call graph: functions as boxes, calls as arrows.

import type { GraphDirection } from "../../../engine/graph/layout";
import type { CallGraph } from "../../../engine/graph/methods";
import { functionName } from "../../../shared/names";
import { countText, shareText } from "../../../shared/units";
import { addressed } from "../../address";
import { Choice } from "../../choice";
import { query } from "../../engine";
import { Problem } from "../../problem";
import { names, selected, selection } from "../../state";
import { useAnswer } from "../../use-answer";
import { GraphPicture } from "./picture";

/** In percent. */
const LEAST = ["0.5", "1", "2", "5", "10", "20"];
const leastText = addressed("graph.least", "1");
const directionText = addressed("graph.direction", "down");
const focusText = addressed("graph.focus", "", { isStep: true });

function least(): number {
  const percent = Number(leastText.value);
  return percent >= 0 && percent <= 100 ? percent / 100 : 0.01;
}

function focus(): number | null {
  const of = Number(focusText.value);
  return focusText.value !== "" && of >= 0 && of < names().functions.name.length ? of : null;
}

function direction(): GraphDirection {
  return directionText.value === "right" ? "right" : "down";
}

function focusOn(of: number | null): void {
  focusText.value = of === null ? "" : String(of);
}

export function GraphView() {
  const question = { least: least(), focus: focus(), direction: direction() };
  const selected = selection.value;
  const { value, error, isPending } = useAnswer(JSON.stringify([selected, question]), async () => ({
    graph: await query("graph", selected, question),
    subject: JSON.stringify([selected, question.focus, question.direction]),
  }));
  return (
    <div class="with-bar graph">
      <GraphBar graph={value?.graph} isPending={isPending} />
      <div class="rest">
        {error && <Problem what="The call graph can't be drawn" why={error} />}
        {!error && !value && (
          <p class="opening" role="status">
            Drawing…
          </p>
        )}
        {value && value.graph.boxes.length === 0 && (
          <p class="opening">
            No function is in what is selected. Choose another measure, or show more kinds of functions.
          </p>
        )}
        {value && value.graph.boxes.length > 0 && (
          <GraphPicture
            graph={value.graph}
            subject={value.subject}
            onFocus={focusOn}
            onUnfocus={() => {
              if (focus() === null) return false;
              focusOn(null);
              return true;
            }}
          />
        )}
      </div>
    </div>
  );
}

function GraphBar({ graph, isPending }: { graph: CallGraph | undefined; isPending: boolean }) {
  const focused = focus();
  const chosen = selected.value;
  return (
    <div class="bar">
      <span id="graph-least">Minimum share</span>
      <Choice
        label="Minimum share"
        value={leastText.value}
        options={LEAST.map((percent) => ({
          value: percent,
          label: `${percent}%`,
          title: `Leave out functions with less than ${percent}% in total`,
        }))}
        choose={(percent) => {
          leastText.value = percent;
        }}
      />
      <Choice<GraphDirection>
        label="Direction"
        value={direction()}
        options={[
          { value: "down", label: "Down", title: "Callees below their callers" },
          { value: "right", label: "Right", title: "Callees to the right of their callers" },
        ]}
        choose={(chosen) => {
          directionText.value = chosen;
        }}
      />
      {focused === null ? (
        <button
          type="button"
          disabled={chosen === null}
          title="Show only callers and callees of the selected function (Enter)"
          onClick={() => focusOn(chosen)}
        >
          Focus on selected
        </button>
      ) : (
        <button type="button" aria-pressed="true" title="Show everything again (Escape)" onClick={() => focusOn(null)}>
          Only paths through <b>{functionName(names(), focused)}</b> ×
        </button>
      )}
      <span class="summary" role="status">
        {graph && (isPending ? "Drawing…" : `${summaryText(graph)}${selectionText(graph, chosen)}`)}
      </span>
    </div>
  );
}

/** Reports that the selected function is not in the graph. */
function selectionText({ boxes }: CallGraph, chosen: number | null): string {
  if (chosen === null || boxes.some(({ of }) => of === chosen)) return "";
  return `. ${functionName(names(), chosen)} is not shown: focus on it, or choose a smaller share`;
}

/** Describes the content of the graph, and what is left out. */
function summaryText({ boxes, functionsLeftOut, isFull, edgesLeftOut }: CallGraph): string {
  const counted = (count: number, what: string) => `${countText(count)} ${what}${count === 1 ? "" : "s"}`;
  const why = isFull ? "with a lower cost than these" : `with less than ${shareText(least())}`;
  const missing = [
    functionsLeftOut > 0 ? `${counted(functionsLeftOut, "function")} ${why}` : "",
    edgesLeftOut > 0 ? counted(edgesLeftOut, "lighter call") : "",
  ].filter(Boolean);
  const shown = counted(boxes.length, "function");
  return missing.length === 0 ? `${shown}, nothing left out` : `${shown}. Left out: ${missing.join(", ")}`;
}
