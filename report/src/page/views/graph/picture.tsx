// A call graph that can be moved, zoomed and navigated by keys.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CallGraph } from "../../../engine/graph/methods";
import { isDark } from "../../colours";
import { useFound } from "../../search-results";
import { names, select, selected } from "../../state";
import { Tooltip } from "../../tooltip";
import { type Camera, type CameraControl, fitting, showing, useCamera } from "./camera";
import { GraphDrawing } from "./drawing";
import { neighbour, stepOf } from "./keys";
import { ArrowTip, BoxTip } from "./tips";

/** Below this scale text is not readable; no graph is initially smaller. */
const READABLE = 0.5;
const ZOOM_STEP = 1.25;

type HoveredShape = ({ box: number } | { arrow: number }) & { x: number; y: number };

interface Properties {
  graph: CallGraph;
  /** A key of the content: a graph with another key is first shown whole. */
  subject: string;
  onFocus(of: number): void;
  onUnfocus(): boolean;
}

export function GraphPicture({ graph, subject, onFocus, onUnfocus }: Properties) {
  const svg = useRef<SVGSVGElement>(null);
  const control = useCamera(svg);
  const { camera } = control;
  const [hovered, setHovered] = useState<HoveredShape>();
  const [entered, setEntered] = useState<number>();
  useSteadyCamera(graph, subject, svg, control);
  const chosen = placeOf(graph, selected.value);
  const entry = placeOf(graph, entered ?? null) ?? chosen ?? 0;
  const hoveredBox = hovered && "box" in hovered ? hovered.box : undefined;
  const dark = isDark();
  const found = useFound();
  // The same elements while the camera moves, so that none is compared again.
  const drawing = useMemo(
    () => (
      <GraphDrawing
        graph={graph}
        looks={{
          names: names(),
          dark,
          hovered: hoveredBox,
          chosen,
          entry,
          isFound: (box) => found?.[box.of] === 1,
          isSearching: found !== null,
        }}
        onBox={(place) => !control.hasMoved() && select(graph.boxes[place]!.of)}
        onFocus={(place) => setEntered(graph.boxes[place]!.of)}
        onHover={(what, event) => setHovered(what && { ...what, x: event.clientX, y: event.clientY })}
      />
    ),
    [graph, dark, hoveredBox, chosen, entry, found],
  );

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const element = event.target as Element;
    const place = Number(element.getAttribute("data-place") ?? entry);
    const step = stepOf(graph, event.key);
    if (step) {
      const next = neighbour(graph, place, step);
      if (next !== undefined) enter(next);
    } else if (event.key === "Enter") onFocus(graph.boxes[place]!.of);
    else if (event.key === " ") select(graph.boxes[place]!.of);
    else if (event.key === "+" || event.key === "=") control.zoom(ZOOM_STEP);
    else if (event.key === "-") control.zoom(1 / ZOOM_STEP);
    else if (event.key === "0") control.setCamera(() => fitting(graph, svg.current!.getBoundingClientRect()));
    else if (event.key !== "Escape" || !onUnfocus()) return;
    event.preventDefault();
  };
  const enter = (place: number) => {
    svg.current!.querySelector<SVGGElement>(`[data-place="${place}"]`)?.focus({ preventScroll: true });
    control.setCamera((before) => showing(before, graph.boxes[place]!, svg.current!.getBoundingClientRect()));
  };

  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset can't be a drawing. */}
      <svg
        ref={svg}
        class={`call-graph ${camera.scale < READABLE ? "far" : ""}`}
        role="group"
        aria-label="Call graph. Arrow keys go to callers and callees, Enter shows only the callers and callees of a function."
        onKeyDown={onKeyDown}
        {...control.events}
      >
        <g transform={`translate(${camera.x.toFixed(2)} ${camera.y.toFixed(2)}) scale(${camera.scale.toFixed(4)})`}>
          {drawing}
        </g>
      </svg>
      <ZoomButtons control={control} fit={() => fitting(graph, svg.current!.getBoundingClientRect())} />
      {hovered && (
        <Tooltip x={hovered.x} y={hovered.y}>
          {"box" in hovered
            ? graph.boxes[hovered.box] && <BoxTip graph={graph} box={graph.boxes[hovered.box]!} />
            : graph.arrows[hovered.arrow] && <ArrowTip graph={graph} arrow={graph.arrows[hovered.arrow]!} />}
        </Tooltip>
      )}
    </>
  );
}

function ZoomButtons({ control, fit }: { control: CameraControl; fit(): ReturnType<typeof fitting> }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset can't be laid out in a corner.
    <div class="zoom" role="group" aria-label="Zoom">
      <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => control.zoom(ZOOM_STEP)}>
        +
      </button>
      <button type="button" aria-label="Zoom out" title="Zoom out (-)" onClick={() => control.zoom(1 / ZOOM_STEP)}>
        −
      </button>
      <button type="button" title="Show the whole graph (0)" onClick={() => control.setCamera(fit)}>
        Fit
      </button>
    </div>
  );
}

function placeOf(graph: CallGraph, of: number | null): number | undefined {
  const place = of === null ? -1 : graph.boxes.findIndex((box) => box.of === of);
  return place < 0 ? undefined : place;
}

/** Shows a new graph whole. If a graph only gained or lost boxes, its centre keeps its position. */
function useSteadyCamera(
  graph: CallGraph,
  subject: string,
  svg: { current: SVGSVGElement | null },
  control: CameraControl,
): void {
  const before = useRef<{ graph: CallGraph; subject: string } | null>(null);
  useLayoutEffect(() => {
    const window = svg.current!.getBoundingClientRect();
    const old = before.current;
    before.current = { graph, subject };
    if (!old || old.subject !== subject) {
      control.setCamera(() => beginning(graph, window));
      return;
    }
    control.setCamera((camera) => {
      const x = (window.width / 2 - camera.x) / camera.scale;
      const y = (window.height / 2 - camera.y) / camera.scale;
      const far = (box: { x: number; y: number }) => Math.hypot(box.x - x, box.y - y);
      const stays = old.graph.boxes
        .filter((box) => placeOf(graph, box.of) !== undefined)
        .sort((a, b) => Number(b.of === selected.peek()) - Number(a.of === selected.peek()) || far(a) - far(b))[0];
      if (!stays) return beginning(graph, window);
      const now = graph.boxes[placeOf(graph, stays.of)!]!;
      return {
        scale: camera.scale,
        x: camera.x + (stays.x - now.x) * camera.scale,
        y: camera.y + (stays.y - now.y) * camera.scale,
      };
    });
  }, [graph, subject]);
}

/**
 * Returns the camera for the whole graph; if that is not readable, for the selected function, or the most expensive
 * function without a caller.
 */
function beginning(graph: CallGraph, window: DOMRect): Camera {
  const all = fitting(graph, window);
  const isDown = graph.direction === "down";
  if (all.scale >= READABLE) return isDown ? { ...all, y: Math.min(all.y, 40) } : { ...all, x: Math.min(all.x, 40) };
  const called = new Set(graph.arrows.filter(({ from, to }) => from !== to).map((arrow) => arrow.to));
  const chosen = placeOf(graph, selected.peek());
  const first = graph.boxes[chosen ?? graph.boxes.findIndex((_, place) => !called.has(place))] ?? graph.boxes[0]!;
  const isAtEdge = chosen === undefined;
  const x = isAtEdge && !isDown ? (first.width / 2) * READABLE + 16 : window.width / 2;
  const y = isAtEdge && isDown ? (first.height / 2) * READABLE + 16 : window.height / 2;
  return { scale: READABLE, x: x - first.x * READABLE, y: y - first.y * READABLE };
}
