// The tooltip of something on a canvas, beside the pointer.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** Shows a text at a position in the window, and keeps it inside. */
export function Tooltip({ x, y, children }: { x: number; y: number; children: ComponentChildren }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const tip = element.current!;
    const { width, height } = tip.getBoundingClientRect();
    const left = x + 14 + width > innerWidth ? Math.max(4, x - width - 10) : x + 14;
    const top = y + 16 + height > innerHeight ? Math.max(4, y - height - 10) : y + 16;
    tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  });
  return (
    <div class="tooltip" role="tooltip" ref={element}>
      {children}
    </div>
  );
}
