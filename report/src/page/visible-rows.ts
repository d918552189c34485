// Determines which rows of a long list have to be drawn.

import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** Extra rows that are drawn on each side, so that scrolling by a line shows no gap. */
const SPARE = 10;

export interface RowRange {
  from: number;
  to: number;
}

/** Returns the visible rows, of `height` pixels each, of an element that scrolls. */
export function useVisibleRows(scroller: RefObject<HTMLElement | null>, rows: number, height: number): RowRange {
  const [range, setRange] = useState<RowRange>({ from: 0, to: 60 });
  useLayoutEffect(() => {
    const element = scroller.current!;
    const look = () => {
      const first = Math.floor(element.scrollTop / height);
      const last = Math.ceil((element.scrollTop + element.clientHeight) / height);
      setRange((before) =>
        before.from <= Math.max(0, first - 2) &&
        before.to >= last + 2 &&
        before.to - before.from < 3 * (last - first) + 60
          ? before
          : { from: Math.max(0, first - SPARE), to: last + SPARE },
      );
    };
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    look();
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, [height]);
  return { from: Math.min(range.from, Math.max(0, rows - 1)), to: Math.min(range.to, rows) };
}

/** Scrolls as little as possible to show a row, or centres it if it is far away. `above` pixels stay covered. */
export function bringRowIntoView(element: HTMLElement, row: number, height: number, above = 0): void {
  const top = row * height;
  const { scrollTop, clientHeight } = element;
  const inside = clientHeight - above;
  if (top >= scrollTop && top + height <= scrollTop + inside) return;
  const isFar = top < scrollTop - inside || top > scrollTop + 2 * inside;
  if (isFar) element.scrollTop = top - inside / 2 + height / 2;
  else element.scrollTop = top < scrollTop ? top : top + height - inside;
}
