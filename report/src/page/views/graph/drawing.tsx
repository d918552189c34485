// The picture of a call graph.

import { Fragment } from "preact";
import type { CallGraph, GraphArrow, GraphBox } from "../../../engine/graph/methods";
import { LINE_HEIGHT } from "../../../engine/graph/text-size";
import { KINDS } from "../../../shared/format";
import { functionName, type Names } from "../../../shared/names";
import { heatFill, heatLine } from "./heat";
import { arrival, arrowHead, arrowPath, loopPath, withoutHead } from "./shapes";

export interface Looks {
  names: Names;
  dark: boolean;
  /** Indexes of boxes: under the pointer, selected, and in the tab order. */
  hovered: number | undefined;
  chosen: number | undefined;
  entry: number;
  /** Whether a search finds it. */
  isFound(box: GraphBox): boolean;
  isSearching: boolean;
}

interface Properties {
  graph: CallGraph;
  looks: Looks;
  onBox(place: number): void;
  onHover(what: { box: number } | { arrow: number } | undefined, event: PointerEvent): void;
  onFocus(place: number): void;
}

/** Shows the content of the svg, in the coordinates of the drawing. */
export function GraphDrawing(properties: Properties) {
  const { graph, looks } = properties;
  const lit = looks.hovered ?? looks.chosen;
  return (
    <>
      {graph.arrows.map((arrow, place) => (
        <Arrow
          key={`${graph.boxes[arrow.from]!.of}-${graph.boxes[arrow.to]!.of}`}
          arrow={arrow}
          share={shareOf(graph, arrow.total)}
          direction={graph.direction}
          dark={looks.dark}
          state={lit === undefined ? "" : arrow.from === lit || arrow.to === lit ? "near" : "away"}
          onHover={(isHere, event) => properties.onHover(isHere ? { arrow: place } : undefined, event)}
        />
      ))}
      {graph.boxes.map((box, place) => (
        <BoxOf key={box.of} {...properties} box={box} place={place} />
      ))}
    </>
  );
}

function shareOf(graph: CallGraph, cost: number): number {
  return graph.total === 0 ? 0 : cost / graph.total;
}

/** Returns the label of a box for screen readers: its text, with the full name if that was cut. */
export function boxLabel(box: GraphBox, names: Names): string {
  const name = functionName(names, box.of);
  const shown = [box.title, box.place, ...box.lines].filter((line) => line !== "");
  return [...shown, ...(name === box.title ? [] : [name])].join(", ");
}

function Arrow(properties: {
  arrow: GraphArrow;
  share: number;
  direction: CallGraph["direction"];
  dark: boolean;
  state: string;
  onHover(isHere: boolean, event: PointerEvent): void;
}) {
  const { arrow, share, direction, dark, state, onHover } = properties;
  const line = heatLine(share, dark);
  const width = 1 + 5 * Math.sqrt(Math.min(1, Math.abs(share)));
  const isLoop = arrow.from === arrow.to;
  const way = arrival(arrow.points, isLoop ? "loop" : direction);
  const head = 7 + width * 1.4;
  const points = withoutHead(arrow.points, way, head * 0.8);
  const path = isLoop ? loopPath(points) : arrowPath(points, direction);
  return (
    <g
      class={`arrow ${state}`}
      onPointerEnter={(event: PointerEvent) => onHover(true, event)}
      onPointerLeave={(event: PointerEvent) => onHover(false, event)}
    >
      <path class="reach" d={path} />
      <path class="line" d={path} stroke={line} stroke-width={width.toFixed(1)} />
      <path d={arrowHead(arrow.points, way, head)} fill={line} />
      {arrow.label && (
        <g class="label">
          <rect
            x={arrow.label.x - arrow.label.width / 2}
            y={arrow.label.y - arrow.label.height / 2}
            width={arrow.label.width}
            height={arrow.label.height}
            rx="3"
          />
          <text x={arrow.label.x} y={arrow.label.y + 3.5} text-anchor="middle">
            {arrow.text}
          </text>
        </g>
      )}
    </g>
  );
}

function BoxOf({ graph, looks, box, place, onBox, onHover, onFocus }: Properties & { box: GraphBox; place: number }) {
  const share = shareOf(graph, box.total);
  const kind = KINDS[looks.names.functions.kind[box.of]!] ?? "span";
  const isFound = looks.isFound(box);
  const marks = [
    looks.isSearching ? (isFound ? "found" : "dim") : "",
    place === looks.chosen ? "chosen" : "",
    place === looks.hovered ? "hovered" : "",
  ];
  const below = box.place === "" ? box.lines : [box.place, ...box.lines];
  const left = -box.width / 2;
  const top = -box.height / 2;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a button can't be a part of a drawing.
    <g
      class={`box ${marks.filter(Boolean).join(" ")}`}
      transform={`translate(${box.x.toFixed(1)} ${box.y.toFixed(1)})`}
      role="button"
      tabindex={place === looks.entry ? 0 : -1}
      aria-label={boxLabel(box, looks.names)}
      aria-pressed={place === looks.chosen}
      data-function={box.of}
      data-place={place}
      onClick={() => onBox(place)}
      onFocus={() => onFocus(place)}
      onPointerEnter={(event: PointerEvent) => onHover({ box: place }, event)}
      onPointerLeave={(event: PointerEvent) => onHover(undefined, event)}
    >
      <rect
        class="body"
        x={left}
        y={top}
        width={box.width}
        height={box.height}
        rx="6"
        fill={heatFill(share, looks.dark)}
        stroke={heatLine(share, looks.dark)}
      />
      <rect class={`kind ${kind}`} x={left + 5} y={top + 6} width="4" height={box.height - 12} rx="2" />
      <text class="title" x={left + 16} y={top + 18}>
        {box.title}
      </text>
      {/* Spaces keep the lines apart for those who do not see them. */}
      {below.map((line, number) => (
        <Fragment key={line}>
          {" "}
          <text class={line === box.place ? "place" : ""} x={left + 16} y={top + 18 + LINE_HEIGHT * (number + 1)}>
            {line}
          </text>
        </Fragment>
      ))}
    </g>
  );
}
