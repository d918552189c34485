// A canvas that has the resolution of the screen and the size of its parent.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { isDark } from "./colours";

/** The drawing surface: sizes are in pixels of the page. */
export interface Surface {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  /** A colour of the theme, by its name in `theme.css`. */
  colour(name: string): string;
}

interface Properties {
  /** A description of the content. */
  label: string;
  draw(surface: Surface): void;
  /** Handlers and other attributes of the element. */
  events?: Record<string, unknown>;
}

/**
 * Fills its parent element, whose size is set by the style. It is drawn again when `draw` is another function, and when the
 * size or the theme changes.
 */
export function Canvas({ label, draw, events }: Properties) {
  const element = useRef<HTMLCanvasElement>(null);
  const newest = useRef(draw);
  newest.current = draw;
  const dark = isDark();
  const next = useRef(0);
  useLayoutEffect(() => {
    // All requests before the next frame are drawn in that frame, and never delayed: changes may be as frequent as frames.
    next.current ||= requestAnimationFrame(() => {
      next.current = 0;
      paint(element.current, newest.current);
    });
  }, [draw, dark]);
  useEffect(() => () => cancelAnimationFrame(next.current), []);
  useEffect(() => {
    const observer = new ResizeObserver(() => paint(element.current, newest.current));
    observer.observe(element.current!.parentElement!);
    return () => observer.disconnect();
  }, []);
  return (
    // biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: keys move inside the drawing.
    <canvas ref={element} tabIndex={0} role="application" aria-label={label} {...events} />
  );
}

function paint(canvas: HTMLCanvasElement | null, draw: (surface: Surface) => void): void {
  const place = canvas?.parentElement;
  if (!canvas || !place) return;
  const { clientWidth: width, clientHeight: height } = place;
  const ratio = devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  // A new size needs a new bitmap, which takes longer than clearing the old one.
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.width = wide;
    canvas.height = high;
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const style = getComputedStyle(document.documentElement);
  draw({ context, width, height, colour: (name) => style.getPropertyValue(`--${name}`) });
}

const widths = new Map<string, number>();

/** Cuts a text to a width, in a monospaced font, with a mark where text is left out. */
export function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  let letter = widths.get(context.font);
  if (letter === undefined) {
    letter = context.measureText("m").width;
    widths.set(context.font, letter);
  }
  const most = Math.floor(width / letter);
  if (text.length <= most) return text;
  return most < 3 ? "" : `${text.slice(0, most - 1)}…`;
}
