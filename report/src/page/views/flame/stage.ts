// The visible part of a flame graph, and its animated moves.

import { batch, type Signal } from "@preact/signals";
import type { FlameLayout } from "../../../engine/flame/layout";
import { pathTo, ROW, wayTo } from "./boxes";
import { rowAt, rowTop } from "./draw";
import { between, type Interval, moved, pathText, scaled, spanText, within } from "./window";

const ZOOM_MS = 150;
/** The narrowest visible part, as a share of the whole width. */
const NARROWEST = 1e-9;

/** The names in the address for the zoom of a flame graph. */
export interface Zoom {
  path: Signal<string>;
  span: Signal<string>;
}

export class Stage {
  layout: FlameLayout | undefined;
  treeKey = "";
  window: Interval = [0, 1];
  isUpward = false;
  scroller: HTMLElement | null = null;
  private moving = 0;

  constructor(
    private readonly zoom: Zoom,
    private readonly redraw: () => void,
  ) {}

  get width(): number {
    return this.scroller?.clientWidth ?? 0;
  }

  get height(): number {
    return this.scroller?.clientHeight ?? 0;
  }

  get top(): number {
    return this.scroller?.scrollTop ?? 0;
  }

  /** Returns the height of all rows; at least that of the element. */
  get sheet(): number {
    return Math.max((this.layout?.rows ?? 0) * ROW, this.height);
  }

  /** Shows a layout: moves there smoothly if it is the current request, for the same tree as before. */
  take(layout: FlameLayout, treeKey: string, isNewest: boolean): void {
    const isSame = this.treeKey === treeKey && this.layout !== undefined;
    const isOther = this.layout !== undefined && pathText(this.layout.path) !== pathText(layout.path);
    this.layout = layout;
    this.treeKey = treeKey;
    if (!isSame) this.jump(layout.window);
    else if (isNewest) this.glide(layout.window);
    // The sheet gets its new height only when it is drawn.
    if (isOther && isNewest) requestAnimationFrame(() => this.revealRow(layout.path.length));
  }

  /** Returns the position in the layout at a distance from the left edge. */
  placeAt(x: number): number {
    return this.window[0] + (x / Math.max(this.width, 1)) * (this.window[1] - this.window[0]);
  }

  rowAt(y: number): number {
    return rowAt(this, y);
  }

  /** Zooms by a factor (below 1: in) around a position. */
  scale(factor: number, around: number): void {
    this.look(scaled(this.window, factor, around));
  }

  /** Moves by a number of pixels. */
  move(pixels: number): void {
    const by = (pixels / Math.max(this.width, 1)) * (this.window[1] - this.window[0]);
    this.look(moved(this.window, by));
  }

  /** Zooms to a box. */
  zoomTo(box: number): void {
    if (this.layout) this.keep(pathText(pathTo(this.layout, box)), "");
  }

  zoomOut(): void {
    if (!this.layout) return;
    const isPart = this.zoom.span.value !== "";
    this.keep(pathText(isPart ? this.layout.path : this.layout.path.slice(0, -1)), "");
  }

  get isZoomed(): boolean {
    return this.zoom.path.value !== "" || this.zoom.span.value !== "";
  }

  reset(): void {
    this.keep("", "");
  }

  /** Scrolls to a box. */
  reveal(box: number): void {
    const { layout } = this;
    if (!layout) return;
    const { x0, x1, depth } = layout.boxesColumns;
    this.revealRow(depth[box]!);
    const [from, to] = this.window;
    if (x1[box]! <= from || x0[box]! >= to) this.look(moved(this.window, (x0[box]! + x1[box]! - from - to) / 2));
  }

  /** Centres a position. */
  centre(place: number): void {
    this.look(moved(this.window, place - (this.window[0] + this.window[1]) / 2));
  }

  private revealRow(row: number): void {
    const { scroller } = this;
    if (!scroller) return;
    const top = rowTop(this, row);
    if (top < 0) scroller.scrollTop += top;
    else if (top + ROW > this.height) scroller.scrollTop += top + ROW - this.height;
  }

  /** Shows a part of the width at once; from then on the zoomed box is the nearest one that contains it. */
  private look(requested: Interval): void {
    const { layout } = this;
    if (!layout || layout.whole <= 0) return;
    if (requested[1] - requested[0] < layout.whole * NARROWEST) return;
    const window = within(requested, [0, layout.whole]);
    const { x0, x1 } = layout.boxesColumns;
    const slack = (window[1] - window[0]) * 1e-6;
    const way = wayTo(layout, layout.zoomed);
    const box = way.filter((on) => x0[on]! - slack <= window[0] && x1[on]! + slack >= window[1]).pop() ?? 0;
    const [begin, width] = [x0[box]!, x1[box]! - x0[box]!];
    cancelAnimationFrame(this.moving);
    this.window = window;
    this.keep(pathText(pathTo(layout, box)), spanText([(window[0] - begin) / width, (window[1] - begin) / width]));
    this.redraw();
  }

  private keep(path: string, span: string): void {
    batch(() => {
      this.zoom.path.value = path;
      this.zoom.span.value = span;
    });
  }

  private jump(window: Interval): void {
    cancelAnimationFrame(this.moving);
    this.window = window;
    this.redraw();
  }

  private glide(to: Interval): void {
    const from = this.window;
    const far = Math.max(Math.abs(from[0] - to[0]), Math.abs(from[1] - to[1]));
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (isStill || far <= (to[1] - to[0]) * 1e-4) {
      this.jump(to);
      return;
    }
    cancelAnimationFrame(this.moving);
    const began = performance.now();
    const step = (now: number) => {
      const part = Math.min(Math.max((now - began) / ZOOM_MS, 0), 1);
      this.window = between(from, to, part);
      this.redraw();
      if (part < 1) this.moving = requestAnimationFrame(step);
    };
    this.moving = requestAnimationFrame(step);
  }
}
