// The frame around all views: title, tabs, what is selected.

import { useEffect } from "preact/hooks";
import { isDark } from "./colours";
import { FilterBar } from "./filter-bar";
import { FunctionPanel } from "./function-panel";
import { onKey } from "./keyboard";
import { head, selected, show, type ViewName, view } from "./state";
import { VIEWS } from "./views";

export function App() {
  useEffect(() => {
    document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  });
  useEffect(() => {
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  const views = VIEWS.filter((of) => of.isThere(head()));
  const current = views.find((of) => of.name === view.value) ?? views[0]!;
  const View = current.component;
  return (
    <div class="app">
      <header>
        <h1>
          <span class="brand">Stackweave</span> <span class="title">{head().title}</span>
        </h1>
        <div class="tabs" role="tablist" aria-label="Views">
          {views.map((of, place) => (
            <Tab key={of.name} name={of.name} label={of.label} place={place + 1} isCurrent={of === current} />
          ))}
        </div>
        <FilterBar />
      </header>
      <main>
        <div class="view" id="view" role="tabpanel" aria-labelledby={`tab-${current.name}`} data-view={current.name}>
          <View key={current.name} />
        </div>
      </main>
      {selected.value !== null && <FunctionPanel of={selected.value} />}
    </div>
  );
}

function Tab({ name, label, place, isCurrent }: { name: ViewName; label: string; place: number; isCurrent: boolean }) {
  return (
    <button
      type="button"
      role="tab"
      id={`tab-${name}`}
      aria-selected={isCurrent}
      aria-controls="view"
      aria-keyshortcuts={String(place)}
      title={`${label} (${place})`}
      onClick={() => show(name)}
    >
      {label}
    </button>
  );
}
