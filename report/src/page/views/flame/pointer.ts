// Mouse, wheel and touch on a flame graph: a click zooms to a box, a drag moves, Ctrl and the wheel or two fingers zoom.

import { boxAt } from "./boxes";
import type { Stage } from "./stage";

const LEAST_DRAG = 4;

interface Pointer {
  x: number;
  y: number;
}

export interface PointerTarget {
  hover(box: number | null, x: number, y: number): void;
  click(box: number): void;
}

export class FlamePointer {
  private readonly down = new Map<number, Pointer>();
  private from: Pointer = { x: 0, y: 0 };
  private isDrag = false;

  constructor(
    private readonly stage: Stage,
    private readonly target: PointerTarget,
  ) {}

  /** Handlers for the canvas. */
  readonly events = {
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0) return;
      this.down.set(event.pointerId, pointer(event));
      if (this.down.size === 1) {
        this.from = pointer(event);
        this.isDrag = false;
      } else {
        this.isDrag = true;
      }
    },
    onPointerMove: (event: PointerEvent) => {
      const before = this.down.get(event.pointerId);
      if (!before) {
        if (event.pointerType !== "touch") this.target.hover(this.boxOf(event), event.clientX, event.clientY);
        return;
      }
      const now = pointer(event);
      if (this.down.size === 2) this.pinch(event, before, now);
      else this.drag(event, before, now);
      this.down.set(event.pointerId, now);
    },
    onPointerUp: (event: PointerEvent) => this.lift(event),
    onPointerCancel: (event: PointerEvent) => this.lift(event),
    onPointerLeave: () => this.target.hover(null, 0, 0),
    onClick: (event: MouseEvent) => {
      const box = this.boxOf(event);
      if (!this.isDrag && box !== null) this.target.click(box);
    },
    onDblClick: (event: MouseEvent) => {
      if (this.boxOf(event) === null) this.stage.reset();
    },
  };

  /** A separate listener, because it must be able to prevent the page from zooming. */
  readonly onWheel = (event: WheelEvent) => {
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const delta = Math.max(-120, Math.min(120, event.deltaY * unit));
      this.stage.scale(Math.exp(delta * 0.004), this.stage.placeAt(inside(event).x));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.stage.move((event.deltaX || event.deltaY) * unit);
    }
    this.target.hover(null, 0, 0);
  };

  private drag(event: PointerEvent, before: Pointer, now: Pointer): void {
    if (!this.isDrag) {
      if (Math.hypot(now.x - this.from.x, now.y - this.from.y) < LEAST_DRAG) return;
      this.isDrag = true;
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
      this.target.hover(null, 0, 0);
    }
    if (now.x !== before.x) this.stage.move(before.x - now.x);
    // Touch scrolls natively.
    if (event.pointerType !== "touch" && this.stage.scroller) this.stage.scroller.scrollTop += before.y - now.y;
  }

  private pinch(event: PointerEvent, before: Pointer, now: Pointer): void {
    const other = [...this.down].find(([id]) => id !== event.pointerId)?.[1];
    if (!other) return;
    const left = (event.currentTarget as Element).getBoundingClientRect().left;
    const far = Math.max(Math.abs(now.x - other.x), 8);
    const was = Math.max(Math.abs(before.x - other.x), 8);
    this.stage.scale(was / far, this.stage.placeAt((now.x + other.x) / 2 - left));
    this.stage.move((before.x - now.x) / 2);
  }

  private lift(event: PointerEvent): void {
    this.down.delete(event.pointerId);
  }

  private boxOf(event: MouseEvent): number | null {
    const { layout } = this.stage;
    if (!layout) return null;
    const { x, y } = inside(event);
    const pixel = this.stage.placeAt(1) - this.stage.placeAt(0);
    return boxAt(layout, this.stage.placeAt(x), this.stage.rowAt(y), pixel / 2);
  }
}

function pointer(event: PointerEvent): Pointer {
  return { x: event.clientX, y: event.clientY };
}

function inside(event: MouseEvent): Pointer {
  const { left, top } = (event.currentTarget as Element).getBoundingClientRect();
  return { x: event.clientX - left, y: event.clientY - top };
}
