// The tabs of the views: arrow keys go from one to the next.

import { show } from "./state";
import type { ViewEntry } from "./views";

export function Tabs({ views, current }: { views: ViewEntry[]; current: ViewEntry }) {
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -views.length, End: views.length }[event.key];
    if (step === undefined) return;
    const place = views.indexOf(current) + step;
    const wraps = Math.abs(step) === 1;
    const next = views[wraps ? (place + views.length) % views.length : step < 0 ? 0 : views.length - 1]!;
    show(next.name);
    document.getElementById(`tab-${next.name}`)?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views" onKeyDown={onKeyDown}>
      {views.map((of, place) => (
        <button
          key={of.name}
          type="button"
          role="tab"
          id={`tab-${of.name}`}
          aria-selected={of === current}
          aria-controls="view"
          aria-keyshortcuts={String(place + 1)}
          tabIndex={of === current ? 0 : -1}
          title={`${of.label} (${place + 1})`}
          onClick={() => show(of.name)}
        >
          {of.label}
        </button>
      ))}
    </div>
  );
}
