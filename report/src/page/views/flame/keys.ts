// The keys of a flame graph.

import { type Direction, neighbour } from "./boxes";
import type { Stage } from "./stage";

export interface KeyTarget {
  focused: number | null;
  focus(box: number): void;
  open(box: number): void;
}

/** Returns whether the key was handled here. */
export function onFlameKey(event: KeyboardEvent, stage: Stage, target: KeyTarget): boolean {
  const { layout } = stage;
  if (!layout || event.ctrlKey || event.metaKey || event.altKey) return false;
  const direction = directionOf(event.key, stage.isUpward);
  if (event.shiftKey && (direction === "left" || direction === "right")) {
    stage.move((stage.width / 5) * (direction === "left" ? -1 : 1));
    return true;
  }
  if (direction) {
    const at = target.focused;
    target.focus(at === null ? layout.zoomed : neighbour(layout, at, direction));
    return true;
  }
  const middle = (stage.window[0] + stage.window[1]) / 2;
  switch (event.key) {
    case "Enter":
    case " ":
      if (target.focused !== null) target.open(target.focused);
      return true;
    case "Backspace":
      stage.zoomOut();
      return true;
    case "+":
    case "=":
      stage.scale(1 / 1.5, middle);
      return true;
    case "-":
      stage.scale(1.5, middle);
      return true;
    case "0":
      stage.reset();
      return true;
    case "Escape":
      // Without a zoom the page handles the key.
      if (!stage.isZoomed) return false;
      stage.reset();
      return true;
  }
  return false;
}

function directionOf(key: string, isUpward: boolean): Direction | null {
  if (key === "ArrowLeft") return "left";
  if (key === "ArrowRight") return "right";
  if (key === "ArrowUp") return isUpward ? "callee" : "caller";
  if (key === "ArrowDown") return isUpward ? "caller" : "callee";
  return null;
}
