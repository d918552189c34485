// The frame around all views: title, tabs, selection.

import { useEffect } from "preact/hooks";
import { isDark } from "./colours";
import { ErrorBoundary } from "./error-boundary";
import { FilterBar } from "./filter-bar";
import { FunctionPanel } from "./function-panel";
import { Help } from "./help";
import { onKey } from "./keyboard";
import { Mark } from "./mark";
import { head, selected, view } from "./state";
import { Tabs } from "./tabs";
import { VIEWS } from "./views";

export function App() {
  const theme = isDark() ? "dark" : "light";
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
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
          <Mark /> <span class="title">{head().title}</span>
        </h1>
        <Tabs views={views} current={current} />
        <FilterBar />
      </header>
      <main>
        <div class="view" id="view" role="tabpanel" aria-labelledby={`tab-${current.name}`} data-view={current.name}>
          <ErrorBoundary key={current.name}>
            <View />
          </ErrorBoundary>
        </div>
      </main>
      {selected.value !== null && <FunctionPanel of={selected.value} />}
      <Help />
    </div>
  );
}
