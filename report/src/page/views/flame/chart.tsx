// Boxes on a canvas, each below its caller and as wide as its cost. Shared by the flame graph and the changes.

import { batch } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { FlameLayout, LayoutRequest } from "../../../engine/flame/layout";
import { Canvas } from "../../canvas";
import { Problem } from "../../problem";
import { useFound } from "../../search-results";
import { select, selected } from "../../state";
import { Tooltip } from "../../tooltip";
import { isFunction } from "./boxes";
import { Breadcrumbs } from "./breadcrumbs";
import { drawFlame } from "./draw";
import { onFlameKey } from "./keys";
import { useLayout } from "./layouts";
import { FlameMap } from "./map";
import { FlamePointer } from "./pointer";
import { Stage, type Zoom } from "./stage";
import { pathOf, spanOf } from "./window";

/** The look and the texts of boxes. */
export interface Skin<L extends FlameLayout> {
  colour(layout: L, box: number): string;
  text(layout: L, box: number): string;
  /** The text at the right of a box with enough room. */
  cost(layout: L, box: number): string;
  tip(layout: L, box: number): ComponentChildren;
  /** A box in a sentence. */
  describe(layout: L, box: number): string;
  isMarked?(layout: L, box: number): boolean;
}

interface Properties<L extends FlameLayout> {
  label: string;
  /** Changes when the tree changes. */
  treeKey: string;
  layOut(request: LayoutRequest): Promise<L>;
  zoom: Zoom;
  isUpward: boolean;
  skin: Skin<L>;
  /** The text if nothing has a cost. */
  empty: string;
}

interface HoveredBox {
  node: number;
  x: number;
  y: number;
}

export function FlameChart<L extends FlameLayout>(properties: Properties<L>) {
  const { treeKey, zoom, isUpward, skin } = properties;
  const [, setDrawn] = useState(0);
  const stage = useMemo(() => new Stage(zoom, () => setDrawn((count) => count + 1)), [zoom]);
  stage.isUpward = isUpward;
  const [hovered, setHovered] = useState<HoveredBox | null>(null);
  const [focused, setFocused] = useState<number | null>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const request = { path: pathOf(zoom.path.value), span: spanOf(zoom.span.value), pixels: size.width };
  const { laid, key } = useLayout(treeKey, request, properties.layOut);
  useLayoutEffect(() => {
    if (laid.layout) stage.take(laid.layout, laid.treeKey, laid.key === key);
  }, [laid]);
  useEffect(() => {
    setHovered(null);
    setFocused(null);
  }, [laid.treeKey]);
  const scroller = useScroller(stage, setSize, () => setDrawn((count) => count + 1));
  const layout = stage.layout as L | undefined;
  const boxOf = (node: number | null | undefined) => boxOfNode(layout, node);
  const open = (box: number) => {
    const of = layout!.boxesColumns.function[box]!;
    setHovered(null);
    batch(() => {
      if (isFunction(of)) select(of);
      stage.zoomTo(box);
    });
  };
  const focus = (box: number) => {
    setFocused(layout!.boxesColumns.node[box]!);
    stage.reveal(box);
  };
  const handlers = useRef({ open, setHovered, layout });
  handlers.current = { open, setHovered, layout };
  const pointer = useMemo(() => pointerOf(stage, handlers), [stage]);
  useWheel(scroller, pointer);
  const found = useFound();
  const hoveredBox = boxOf(hovered?.node);
  const focusedBox = boxOf(focused);
  const chosen = selected.value;
  return (
    <div class="flame">
      {laid.error && <Problem what="The flame graph can't be drawn" why={laid.error} />}
      <div class="flame-head">
        {layout && <Breadcrumbs layout={layout} zoom={zoom} />}
        {layout && layout.whole > 0 && stage.isZoomed && (
          <FlameMap
            stage={stage}
            window={stage.window}
            treeKey={treeKey}
            layOut={properties.layOut}
            colour={skin.colour}
            isUpward={isUpward}
          />
        )}
      </div>
      <div class="flame-scroll" ref={scroller}>
        <div class="flame-sheet" style={{ height: `${stage.sheet}px` }}>
          <div class="flame-window" style={{ height: `${size.height}px` }}>
            <Canvas
              label={properties.label}
              draw={(surface) =>
                layout &&
                layout.whole > 0 &&
                drawFlame(surface, {
                  layout,
                  window: stage.window,
                  top: stage.top,
                  sheet: stage.sheet,
                  isUpward,
                  hovered: hoveredBox,
                  focused: focusedBox,
                  selected: chosen,
                  found,
                  colour: (box) => skin.colour(layout, box),
                  text: (box) => skin.text(layout, box),
                  cost: (box) => skin.cost(layout, box),
                  isMarked: skin.isMarked && ((box) => skin.isMarked!(layout, box)),
                })
              }
              events={{
                ...pointer.events,
                onKeyDown: (event: KeyboardEvent) => {
                  if (onFlameKey(event, stage, { focused: focusedBox, focus, open })) event.preventDefault();
                },
              }}
            />
          </div>
        </div>
        {!layout && !laid.error && (
          <p class="flame-empty" role="status">
            Counting…
          </p>
        )}
        {layout && layout.whole <= 0 && <p class="flame-empty">{properties.empty}</p>}
      </div>
      <p class="flame-status" role="status">
        {layout && focusedBox !== null && skin.describe(layout, focusedBox)}
      </p>
      {layout && hovered && hoveredBox !== null && (
        <Tooltip x={hovered.x} y={hovered.y}>
          {skin.tip(layout, hoveredBox)}
        </Tooltip>
      )}
    </div>
  );
}

function boxOfNode(layout: FlameLayout | undefined, node: number | null | undefined): number | null {
  if (!layout || node === null || node === undefined) return null;
  const box = layout.boxesColumns.node.indexOf(node);
  return box < 0 ? null : box;
}

interface Handlers {
  open(box: number): void;
  setHovered(hover: HoveredBox | null): void;
  layout: FlameLayout | undefined;
}

function pointerOf(stage: Stage, handlers: { current: Handlers }): FlamePointer {
  return new FlamePointer(stage, {
    click: (box) => handlers.current.open(box),
    hover(box, x, y) {
      const { layout, setHovered } = handlers.current;
      setHovered(box === null || !layout ? null : { node: layout.boxesColumns.node[box]!, x, y });
    },
  });
}

/** Returns the element that scrolls, and its size. If the root is at the bottom, the bottom stays in place. */
function useScroller(stage: Stage, setSize: (size: { width: number; height: number }) => void, redraw: () => void) {
  const element = useRef<HTMLDivElement>(null);
  const fromBottom = useRef(0);
  useEffect(() => {
    const scroller = element.current!;
    stage.scroller = scroller;
    const observer = new ResizeObserver(() => setSize({ width: scroller.clientWidth, height: scroller.clientHeight }));
    observer.observe(scroller);
    const onScroll = () => {
      fromBottom.current = scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;
      redraw();
    };
    scroller.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      observer.disconnect();
      scroller.removeEventListener("scroll", onScroll);
    };
  }, [stage]);
  const { sheet, isUpward } = stage;
  useLayoutEffect(() => {
    const scroller = element.current;
    if (scroller && isUpward) scroller.scrollTop = scroller.scrollHeight - scroller.clientHeight - fromBottom.current;
  }, [sheet, isUpward]);
  return element;
}

function useWheel(scroller: { current: HTMLDivElement | null }, pointer: FlamePointer): void {
  useEffect(() => {
    const canvas = scroller.current?.querySelector("canvas");
    canvas?.addEventListener("wheel", pointer.onWheel, { passive: false });
    return () => canvas?.removeEventListener("wheel", pointer.onWheel);
  }, [pointer]);
}
