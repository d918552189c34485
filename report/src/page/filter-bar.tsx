// The selection for all views: measure, threads, kinds of frames, a search.

import { costText, countText, exactShareText, MEASURE_LABELS, momentText } from "../shared/units";
import { isDark, themeText } from "./colours";
import { query } from "./engine";
import { isHelpShown } from "./help";
import {
  chooseDevice,
  chooseRange,
  chooseThreads,
  device,
  filter,
  head,
  isMemory,
  measure,
  measures,
  measureText,
  only,
  range,
  search,
  selection,
  type Toggle,
  threads,
  toggle,
  view,
} from "./state";
import { useAnswer } from "./use-answer";

const TOGGLES: { of: Toggle; label: string; title: string }[] = [
  { of: "python", label: "Python", title: "Show Python functions" },
  { of: "native", label: "Native", title: "Show native functions" },
  { of: "libraries", label: "Libraries", title: "Show functions of libraries" },
  { of: "internals", label: "Internals", title: "Show functions of the interpreter and the internals of libraries" },
];

export function FilterBar() {
  return (
    <div class="bar" role="toolbar" aria-label="View options">
      <Measures />
      <Devices />
      <Threads />
      <span class="toggles">
        {TOGGLES.map(({ of, label, title }) => (
          <button
            key={of}
            type="button"
            class={`toggle ${of}`}
            aria-pressed={filter.value[of]}
            title={title}
            onClick={() => toggle(of)}
          >
            {label}
          </button>
        ))}
      </span>
      <HiddenCost />
      <Only />
      <Range />
      <input
        id="search"
        type="search"
        placeholder="Search (/)"
        aria-label="Search functions, files and modules"
        value={search.value}
        onInput={(event) => {
          search.value = event.currentTarget.value;
        }}
      />
      <button
        type="button"
        class="theme"
        aria-label={isDark() ? "Light theme" : "Dark theme"}
        title={isDark() ? "Light theme" : "Dark theme"}
        onClick={() => {
          themeText.value = isDark() ? "light" : "dark";
        }}
      >
        {isDark() ? "☀" : "☾"}
      </button>
      <button
        type="button"
        class="keys"
        aria-label="Keys"
        title="Keys (?)"
        onClick={() => {
          isHelpShown.value = true;
        }}
      >
        ?
      </button>
    </div>
  );
}

/** Hidden frames with a smaller share of the total are not mentioned, as below the tables of the command. */
const LEAST_HIDDEN = 0.01;

/** The share of the cost that is hidden inside libraries and the interpreter; a click shows it. */
function HiddenCost() {
  const { value: hidden } = useAnswer(JSON.stringify(selection.value), () => query("hidden", selection.value));
  if (!hidden || hidden.functions === 0 || hidden.self < LEAST_HIDDEN * hidden.total) return null;
  const share = exactShareText(hidden.self / hidden.total);
  const except = hidden.costly > 0 ? ", except those with the highest self time" : "";
  const title =
    `${countText(hidden.functions)} functions inside libraries and the interpreter are hidden${except}: ` +
    `${share} (${costText(measure.value, hidden.self)}) of self, counted for their callers. Click to show them.`;
  return (
    <button type="button" class="hidden-cost" title={title} onClick={() => toggle("internals")}>
      {share} hidden
    </button>
  );
}

/** Limits all views to the functions that the search found. */
function Only() {
  if (only.value === "" && search.value.trim() === "") return null;
  const isOn = only.value !== "";
  const title = isOn
    ? "Show all functions again"
    : "Show only functions that the search finds; the cost of the others counts for their callers";
  return (
    <button
      type="button"
      class="only"
      aria-pressed={isOn}
      title={title}
      onClick={() => {
        only.value = isOn ? "" : search.value.trim();
      }}
    >
      Only {isOn ? `“${only.value}” ×` : "found"}
    </button>
  );
}

/** Shows the selected range of time, and a button that resets it. */
function Range() {
  const chosen = range.value;
  if (!chosen || !head().timeline) return null;
  const [from, to] = chosen;
  const step = (to - from) / 100;
  const text = `${momentText(from, step, to)} to ${momentText(to, step, to)}`;
  const isUsed = measure.value === "time";
  const title = isUsed
    ? "Only this range of time is counted"
    : "A range applies only to wall time: the whole recording is shown";
  return (
    <span class={isUsed ? "range" : "range unused"} title={title}>
      <span>{text}</span>
      {!isUsed && <span class="hidden-text">{title}</span>}
      <button type="button" aria-label={`Clear the range ${text}`} onClick={() => chooseRange(null)}>
        ×
      </button>
    </span>
  );
}

function Measures() {
  if (measures.value.length < 2) return null;
  return (
    <select
      id="measure"
      aria-label="Measure"
      value={measure.value}
      onChange={(event) => {
        measureText.value = event.currentTarget.value;
      }}
    >
      {measures.value.map((of) => (
        <option key={of} value={of}>
          {MEASURE_LABELS[of]}
        </option>
      ))}
    </select>
  );
}

/** Shows the choice of the device, if there are several. */
function Devices() {
  const devices = head().memory?.devices ?? [];
  // The memory view has a choice of its own.
  if (devices.length < 2 || !isMemory.value || view.value === "memory") return null;
  return (
    <select
      id="device"
      aria-label="Memory of"
      value={String(device.value)}
      onChange={(event) => chooseDevice(event.currentTarget.value)}
    >
      {devices.map((of) => (
        <option key={of.device} value={String(of.device)}>
          {of.label}
        </option>
      ))}
    </select>
  );
}

function Threads() {
  const all = head().threads;
  if (all.length < 2) return null;
  const several = head().processes.length > 1;
  return (
    <select
      id="threads"
      aria-label="Threads"
      value={threads.value === null ? "" : String(threads.value[0])}
      onChange={(event) => chooseThreads(event.currentTarget.value === "" ? null : [Number(event.currentTarget.value)])}
    >
      <option value="">All {all.length} threads</option>
      {all.map((thread, index) => (
        <option key={thread.tid} value={String(index)}>
          {several ? `${head().processes[thread.process]?.pid}: ` : ""}
          {thread.name || "thread"} ({thread.tid})
        </option>
      ))}
    </select>
  );
}
