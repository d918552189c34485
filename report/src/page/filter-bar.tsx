// What is selected for all views: measure, threads, kinds of frames, a search.

import { MEASURE_LABELS } from "../shared/units";
import { isDark, themeText } from "./colours";
import { isHelpShown } from "./help";
import {
  chooseThreads,
  filter,
  head,
  measure,
  measures,
  measureText,
  only,
  search,
  type Toggle,
  threads,
  toggle,
} from "./state";

const TOGGLES: { of: Toggle; label: string; title: string }[] = [
  { of: "python", label: "Python", title: "Show Python functions" },
  { of: "native", label: "Native", title: "Show native functions" },
  { of: "libraries", label: "Libraries", title: "Show functions of libraries" },
  { of: "internals", label: "Internals", title: "Show the interpreter's own functions, and what libraries do inside" },
];

export function FilterBar() {
  return (
    <div class="bar" role="toolbar" aria-label="What is shown">
      <Measures />
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
      <Only />
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

/** What the search has found can be all that is shown. */
function Only() {
  if (only.value === "" && search.value.trim() === "") return null;
  const isOn = only.value !== "";
  const title = isOn
    ? "Show the others again"
    : "Show only what the search finds; the cost of the others is their callers'";
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

function Measures() {
  if (measures.value.length < 2) return null;
  return (
    <select
      id="measure"
      aria-label="What is counted"
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
