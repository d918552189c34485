// The whole flame graph in small, with a frame around the visible part. A click or a drag moves there.

import { useRef } from "preact/hooks";
import type { FlameLayout, LayoutRequest } from "../../../engine/flame/layout";
import { Canvas, type Surface } from "../../canvas";
import { isFunction } from "./boxes";
import { useLayout } from "./layouts";
import type { Stage } from "./stage";
import type { Interval } from "./window";

const PIXELS = 220;

interface Properties<L extends FlameLayout> {
  stage: Stage;
  /** The visible part. */
  window: Interval;
  treeKey: string;
  layOut(request: LayoutRequest): Promise<L>;
  colour(layout: L, box: number): string;
  isUpward: boolean;
}

export function FlameMap<L extends FlameLayout>({ stage, window, treeKey, layOut, colour, isUpward }: Properties<L>) {
  const { laid } = useLayout(treeKey, { path: [], span: [0, 1], pixels: PIXELS }, layOut);
  const isHeld = useRef(false);
  const { layout } = laid;
  const look = (event: PointerEvent) => {
    const { left, width } = (event.currentTarget as Element).getBoundingClientRect();
    if (layout) stage.centre(((event.clientX - left) / width) * layout.whole);
  };
  return (
    <div class="flame-map">
      <Canvas
        label="Overview with the visible part"
        draw={(surface) => layout && draw(surface, layout, { window, isUpward, colour })}
        events={{
          role: "img",
          tabIndex: -1,
          onPointerDown: (event: PointerEvent) => {
            isHeld.current = true;
            (event.currentTarget as Element).setPointerCapture(event.pointerId);
            look(event);
          },
          onPointerMove: (event: PointerEvent) => isHeld.current && look(event),
          onPointerUp: () => {
            isHeld.current = false;
          },
          onPointerCancel: () => {
            isHeld.current = false;
          },
        }}
      />
    </div>
  );
}

function draw<L extends FlameLayout>(
  { context, width, height, colour: themed }: Surface,
  layout: L,
  { window, isUpward, colour }: Pick<Properties<L>, "window" | "isUpward" | "colour">,
): void {
  const { x0, x1, depth, function: functions } = layout.boxesColumns;
  const scale = width / layout.whole;
  const row = Math.min(Math.max(height / layout.rows, 1), 4);
  const many = themed("line");
  context.clearRect(0, 0, width, height);
  for (let box = 1; box < x0.length; box++) {
    const top = depth[box]! * row;
    if (top >= height) break;
    context.fillStyle = isFunction(functions[box]!) ? colour(layout, box) : many;
    context.fillRect(x0[box]! * scale, isUpward ? height - top - row : top, (x1[box]! - x0[box]!) * scale, row);
  }
  const [from, to] = [window[0] * scale, window[1] * scale];
  context.globalAlpha = 0.6;
  context.fillStyle = themed("page");
  context.fillRect(0, 0, from, height);
  context.fillRect(to, 0, width - to, height);
  context.globalAlpha = 1;
  context.strokeStyle = themed("accent");
  context.lineWidth = 2;
  context.strokeRect(from + 1, 1, Math.max(to - from - 2, 1), height - 2);
}
