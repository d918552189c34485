// The legend of the curves, and hints.

import type { OtherCurve } from "./curves";
import { chooseMoment, chosenMoments, isComparing } from "./state";

interface Properties {
  curves: OtherCurve[];
  /** Whether there are moments to select. */
  hasMoments: boolean;
  hasFailures: boolean;
  isZoomed: boolean;
  showAll(): void;
}

export function Legend({ curves, hasMoments, hasFailures, isZoomed, showAll }: Properties) {
  const { at, other } = chosenMoments();
  return (
    <p class="memory-legend">
      <span class="key taken">Live</span>
      {curves.map(({ name, label, title, isShown, toggle }) => (
        <button key={name} type="button" class={`key ${name}`} aria-pressed={isShown} title={title} onClick={toggle}>
          {label}
        </button>
      ))}
      {hasFailures && <span class="key failed">Out of memory</span>}
      <span class="how">
        {hasMoments ? "Click: select a moment. Shift+click: growth from there. Drag: zoom." : "Drag: zoom."}
      </span>
      {at !== null && other === null && (
        <button
          type="button"
          aria-pressed={isComparing.value}
          onClick={() => {
            isComparing.value = !isComparing.value;
          }}
        >
          {isComparing.value ? "Choose another moment" : "Compare"}
        </button>
      )}
      {at !== null && other !== null && (
        <button type="button" onClick={() => chooseMoment(at)}>
          Stop comparing
        </button>
      )}
      {isZoomed && (
        <button type="button" onClick={showAll}>
          Show the whole recording
        </button>
      )}
    </p>
  );
}
