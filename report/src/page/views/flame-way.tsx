// The functions from the root to the box that is zoomed to: a click goes up.

import type { Layout } from "../../engine/flame-layout";
import { functionName } from "../../shared/names";
import { names } from "../state";
import type { Zoom } from "./flame-stage";
import { pathText } from "./flame-window";

export function FlameWay({ layout, zoom }: { layout: Layout; zoom: Zoom }) {
  const { path } = layout;
  const isPart = zoom.span.value !== "";
  if (path.length === 0 && !isPart) return null;
  const go = (length: number) => {
    zoom.span.value = "";
    zoom.path.value = pathText(path.slice(0, length));
  };
  return (
    <nav class="flame-way" aria-label="Zoomed to">
      <button type="button" title="Show everything (0)" onClick={() => go(0)}>
        All
      </button>
      {path.map((of, place) => (
        <button key={place} type="button" aria-current={place + 1 === path.length} onClick={() => go(place + 1)}>
          {functionName(names(), of)}
        </button>
      ))}
      {isPart && <span class="flame-part">a part of it</span>}
    </nav>
  );
}
