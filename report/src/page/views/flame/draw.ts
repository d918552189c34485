// Draws the visible boxes of a layout.

import type { FlameLayout } from "../../../engine/flame/layout";
import { fitted, type Surface } from "../../canvas";
import { isFunction, ROW, rowOf, wayTo } from "./boxes";
import type { Interval } from "./window";

export interface FlameScene {
  layout: FlameLayout;
  window: Interval;
  /** The scroll position, and the height of all rows. */
  top: number;
  sheet: number;
  /** Whether the root is at the bottom. */
  isUpward: boolean;
  /** Boxes. */
  hovered: number | null;
  focused: number | null;
  /** A function. */
  selected: number | null;
  /** By function: 1 if the search found it. */
  found: Uint8Array | null;
  colour(box: number): string;
  text(box: number): string;
  cost(box: number): string;
  /** Boxes with a mark at their left edge. */
  isMarked?: ((box: number) => boolean) | undefined;
}

interface Place {
  left: number;
  top: number;
  width: number;
}

const INSET = 4;
const MARK = 3;
const LEAST_TEXT = 28;
const LEAST_COST = 60;

/** Returns the position of a row on the canvas. */
export function rowTop(scene: Pick<FlameScene, "top" | "sheet" | "isUpward">, row: number): number {
  return (scene.isUpward ? scene.sheet - (row + 1) * ROW : row * ROW) - scene.top;
}

/** Returns the row at a height of the canvas. */
export function rowAt(scene: Pick<FlameScene, "top" | "sheet" | "isUpward">, y: number): number {
  const inSheet = y + scene.top;
  return Math.floor((scene.isUpward ? scene.sheet - inSheet : inSheet) / ROW);
}

export function drawFlame(surface: Surface, scene: FlameScene): void {
  const { context, width, height } = surface;
  context.clearRect(0, 0, width, height);
  context.font = surface.colour("mono");
  context.textBaseline = "middle";
  const painter = new Painter(surface, scene);
  const rows = [rowAt(scene, 0), rowAt(scene, height)].sort((a, b) => a - b);
  for (let row = Math.max(rows[0]!, 0); row <= Math.min(rows[1]!, scene.layout.rows - 1); row++) {
    const [from, to] = rowOf(scene.layout, row);
    for (let box = from; box < to; box++) painter.box(box);
  }
  painter.outlines();
}

class Painter {
  private readonly text: string;
  private readonly many: string;
  private readonly all: string;
  private readonly mark: string;
  private readonly scale: number;
  private readonly callers: Set<number>;
  private readonly chosen: number[] = [];

  constructor(
    private readonly surface: Surface,
    private readonly scene: FlameScene,
  ) {
    this.text = surface.colour("text");
    this.many = surface.colour("line");
    this.all = surface.colour("sunken");
    this.mark = surface.colour("text");
    this.scale = surface.width / (scene.window[1] - scene.window[0]);
    this.callers = new Set(wayTo(scene.layout, scene.layout.zoomed).slice(0, -1));
  }

  box(box: number): void {
    const place = this.place(box);
    if (!place) return;
    const { context } = this.surface;
    const { layout, found, selected } = this.scene;
    const of = layout.boxesColumns.function[box]!;
    const isOne = isFunction(of);
    const isFaded = isOne && found !== null && !found[of];
    context.globalAlpha = isFaded ? 0.22 : this.callers.has(box) ? 0.55 : 1;
    context.fillStyle = isOne ? this.scene.colour(box) : box === 0 ? this.all : this.many;
    const gap = place.width > 3 ? 1 : 0;
    context.fillRect(place.left, place.top, Math.max(place.width - gap, 0.6), ROW - 1);
    if (of === selected) this.chosen.push(box);
    if (isOne && place.width > 3 && this.scene.isMarked?.(box)) {
      this.drawMark(place);
      place.left += MARK;
      place.width -= MARK;
    }
    context.globalAlpha = isFaded ? 0.6 : 1;
    if (place.width >= LEAST_TEXT) this.write(box, place);
    context.globalAlpha = 1;
  }

  /** Outlines of the boxes that are selected, focused or under the pointer. */
  outlines(): void {
    const { hovered, focused } = this.scene;
    for (const box of this.chosen) this.outline(box, this.text, 2);
    if (hovered !== null) this.outline(hovered, this.text, 1);
    if (focused !== null) this.outline(focused, this.surface.colour("accent"), 3);
  }

  private outline(box: number, colour: string, width: number): void {
    const place = this.place(box);
    if (!place) return;
    const { context } = this.surface;
    context.strokeStyle = colour;
    context.lineWidth = width;
    const half = width / 2;
    context.strokeRect(place.left + half, place.top + half, Math.max(place.width - 1 - width, 1), ROW - 1 - width);
  }

  private drawMark(place: Place): void {
    const { context } = this.surface;
    context.fillStyle = this.mark;
    context.fillRect(place.left, place.top, Math.min(MARK, place.width / 2), ROW - 1);
  }

  private write(box: number, place: Place): void {
    const { context } = this.surface;
    const whole = this.scene.text(box);
    const text = fitted(context, whole, place.width - 2 * INSET);
    if (text === "") return;
    const middle = place.top + ROW / 2;
    context.fillStyle = this.text;
    context.fillText(text, place.left + INSET, middle);
    if (text === whole) this.writeCost(box, place, context.measureText(text).width);
  }

  /** Draws the cost, on the right, if there is room after the name. */
  private writeCost(box: number, place: Place, taken: number): void {
    if (place.width < taken + LEAST_COST) return;
    const { context } = this.surface;
    const text = this.scene.cost(box);
    const left = place.left + place.width - context.measureText(text).width - 2 * INSET;
    if (left < place.left + taken + 4 * INSET) return;
    context.globalAlpha *= 0.65;
    context.fillText(text, left, place.top + ROW / 2);
  }

  /** Returns the part of a box on the canvas. */
  private place(box: number): Place | null {
    const { layout, window } = this.scene;
    const { x0, x1, depth } = layout.boxesColumns;
    const left = Math.max((x0[box]! - window[0]) * this.scale, 0);
    const right = Math.min((x1[box]! - window[0]) * this.scale, this.surface.width);
    if (right <= left) return null;
    return { left, top: rowTop(this.scene, depth[box]!), width: right - left };
  }
}
