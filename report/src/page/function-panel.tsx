// The selected function, with links to it in each view.

import { type FunctionIndex, KINDS, ORIGINS } from "../shared/format";
import { fileOf, functionName, moduleOf, placeOf, shortPath } from "../shared/names";
import { addressWith } from "./address";
import { head, names, select, show, type ViewName } from "./state";
import { VIEWS } from "./views";

const LINKS: { view: ViewName; label: string }[] = [
  { view: "flame", label: "Flame graph" },
  { view: "timeline", label: "Timeline" },
  { view: "table", label: "Callers and callees" },
  { view: "graph", label: "Call graph" },
  { view: "source", label: "Source" },
  { view: "diff", label: "Changes" },
];

export function FunctionPanel({ of }: { of: FunctionIndex }) {
  const known = names();
  if (of >= known.functions.name.length) return null;
  const kind = KINDS[known.functions.kind[of]!];
  const origin = ORIGINS[known.functions.origin[of]!];
  const sources = new Set(head().sources.map((source) => known.strings[source.file]));
  const isThere = (name: ViewName) =>
    VIEWS.some((view) => view.name === name && view.isThere(head())) &&
    (name !== "source" || sources.has(fileOf(known, of) ?? ""));
  return (
    <aside class="selected" aria-label="Selected function">
      <strong class={`name ${kind}`}>{functionName(known, of)}</strong>
      <span class="place" title={placeOf(known, of)}>
        {shortPath(placeOf(known, of), 48)}
      </span>
      <span class="kind">
        {kind}, {origin}
        {moduleOf(known, of) ? `, ${moduleOf(known, of)}` : ""}
      </span>
      <span class="links">
        {LINKS.filter((link) => isThere(link.view)).map((link) => (
          <a
            key={link.view}
            href={addressWith({ view: link.view, function: String(of) })}
            onClick={(event) => {
              event.preventDefault();
              show(link.view, of);
            }}
          >
            {link.label}
          </a>
        ))}
      </span>
      <button type="button" class="close" aria-label="Clear the selection" onClick={() => select(null)}>
        ×
      </button>
    </aside>
  );
}
