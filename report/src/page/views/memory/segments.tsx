// The segments of an allocator with their blocks, as a picture: the gaps between coloured blocks are fragmentation.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { FREE, PENDING, type SegmentColumns, TAKEN } from "../../../engine/memory/segments";
import type { SegmentState } from "../../../shared/format";
import { poolWords } from "../../../shared/memory";
import { bytesText } from "../../../shared/units";
import { Canvas, type Surface } from "../../canvas";
import { Tooltip } from "../../tooltip";
import { blockAt, boxesOf, layOut, type Piece, type Ribbon, type RibbonBox, ROW } from "./ribbon";
import { StackList } from "./stack";

const FEW_ROWS = 8;
const MOST_ROWS = 128;

interface Properties {
  device: number;
  state: SegmentState;
  columns: SegmentColumns;
}

export function Segments({ device, state, columns }: Properties) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [rows, setRows] = useState(FEW_ROWS);
  const [hovered, setHovered] = useState<{ block: number; x: number; y: number } | null>(null);
  const [chosen, setChosen] = useState<number | null>(null);
  useEffect(() => {
    const element = place.current!;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const ribbon = useMemo(() => layOut(columns, width, rows), [columns, width, rows]);
  const draw = useMemo(
    () => (surface: Surface) => drawRibbon(surface, columns, state, ribbon),
    [columns, state, ribbon],
  );
  const at = (event: MouseEvent) => {
    const bounds = (event.currentTarget as Element).getBoundingClientRect();
    return blockAt(columns, ribbon, event.clientX - bounds.left, event.clientY - bounds.top);
  };
  const choose = (block: number | null) => {
    setHovered(null);
    setChosen(block);
    if (block !== null) reveal(place.current!, columns, ribbon, block);
  };
  const zoom = (factor: number) => setRows(Math.min(MOST_ROWS, Math.max(FEW_ROWS, rows * factor)));
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const count = columns.blocksColumns.size.length;
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, Home: -count, End: count };
    if (event.key === "+" || event.key === "=") zoom(2);
    else if (event.key === "-") zoom(0.5);
    else if (event.key === "0") setRows(FEW_ROWS);
    else if (event.key in steps) choose(Math.min(count - 1, Math.max(0, (chosen ?? -1) + steps[event.key]!)));
    else return;
    event.preventDefault();
  };
  return (
    <div class="memory-segments">
      <p class="memory-legend">
        <span class="key taken">In use</span>
        <span class="key rounding">Rounding</span>
        <span class="key pending">Pending frees</span>
        <span class="key free">Free</span>
        <span class="how">The length of a bar is the size of a segment. Click a block to see its stack.</span>
        <span class="choice">
          <button type="button" disabled={rows <= FEW_ROWS} aria-label="Zoom out" onClick={() => zoom(0.5)}>
            −
          </button>
          <button type="button" disabled={rows >= MOST_ROWS} aria-label="Zoom in" onClick={() => zoom(2)}>
            +
          </button>
        </span>
      </p>
      <div class="memory-ribbon">
        <div class="ribbon-place" ref={place} style={{ height: `${ribbon.height}px` }}>
          <Canvas
            label="Segments and their blocks. Arrow keys go from block to block, + and - change the size."
            draw={draw}
            events={{
              onKeyDown,
              onMouseMove: (event: MouseEvent) => {
                const block = at(event);
                setHovered(block === null ? null : { block, x: event.clientX, y: event.clientY });
              },
              onMouseLeave: () => setHovered(null),
              onClick: (event: MouseEvent) => choose(at(event)),
            }}
          />
          {hovered && <Mark name="hovered" boxes={boxesOfBlock(columns, ribbon, hovered.block)} />}
          {chosen !== null && <Mark name="chosen" boxes={boxesOfBlock(columns, ribbon, chosen)} />}
        </div>
      </div>
      <p class="flame-status" role="status">
        {chosen !== null && describeBlock(columns, chosen)}
      </p>
      {chosen !== null && (
        <section class="memory-block" aria-label="The selected block">
          <BlockFacts state={state} columns={columns} block={chosen} />
          {columns.blocksColumns.use[chosen] !== FREE && (
            <StackList device={device} node={columns.blocksColumns.stack[chosen]!} />
          )}
        </section>
      )}
      {hovered && (
        <Tooltip x={hovered.x} y={hovered.y}>
          <BlockFacts state={state} columns={columns} block={hovered.block} />
          {columns.blocksColumns.use[hovered.block] !== FREE && (
            <StackList device={device} node={columns.blocksColumns.stack[hovered.block]!} />
          )}
        </Tooltip>
      )}
    </div>
  );
}

const USES = { [FREE]: "Free", [PENDING]: "Pending free", [TAKEN]: "In use" } as Record<number, string>;

function BlockFacts({ state, columns, block }: { state: SegmentState; columns: SegmentColumns; block: number }) {
  const { segment, offset, size, requested, use } = columns.blocksColumns;
  const { address, size: whole, pool, stream, flags } = columns.segmentsColumns;
  const of = segment[block]!;
  const kind = [flags[of]! & 2 ? "expandable" : "", flags[of]! & 1 ? "of large blocks" : "of small blocks"];
  return (
    <dl class="block-facts">
      <dt>{USES[use[block]!]}</dt>
      <dd>
        {bytesText(size[block]!)}
        {use[block] !== FREE && requested[block] !== size[block] && `, ${bytesText(requested[block]!)} requested`}
      </dd>
      <dt>Segment</dt>
      <dd>
        {bytesText(whole[of]!)}, {kind.filter(Boolean).join(", ")}
        {stream[of]! > 0 && `, stream ${stream[of]}`}, {poolWords(state.pools[pool[of]!]?.name ?? "")}
      </dd>
      <dt>Address</dt>
      <dd>0x{(address[of]! + offset[block]!).toString(16)}</dd>
    </dl>
  );
}

function describeBlock(columns: SegmentColumns, block: number): string {
  const { size, requested, use } = columns.blocksColumns;
  const how = use[block] === FREE ? "" : `, ${bytesText(requested[block]!)} requested`;
  return `Block ${block + 1} of ${size.length}: ${USES[use[block]!]}, ${bytesText(size[block]!)}${how}`;
}

function boxesOfBlock({ blocksColumns }: SegmentColumns, { pieces }: Ribbon, block: number): RibbonBox[] {
  const { segment, offset, size } = blocksColumns;
  const ofSegment = pieces.filter((piece) => piece.segment === segment[block]);
  return boxesOf(ofSegment, offset[block]!, offset[block]! + size[block]!);
}

/** Shows the outline of a block, on a layer above the picture, which need not be drawn again. */
function Mark({ boxes, name }: { boxes: RibbonBox[]; name: string }) {
  return (
    <>
      {boxes.map(({ left, top, width }) => (
        <span
          key={top}
          class={`block-mark ${name}`}
          style={{ left: `${left}px`, top: `${top}px`, width: `${Math.max(3, width)}px`, height: `${ROW}px` }}
        />
      ))}
    </>
  );
}

function reveal(place: HTMLElement, columns: SegmentColumns, ribbon: Ribbon, block: number): void {
  const [first] = boxesOfBlock(columns, ribbon, block);
  const scroller = place.parentElement!;
  if (!first || (first.top >= scroller.scrollTop && first.top + ROW <= scroller.scrollTop + scroller.clientHeight))
    return;
  scroller.scrollTop = Math.max(0, first.top - ROW);
}

function drawRibbon(surface: Surface, columns: SegmentColumns, state: SegmentState, ribbon: Ribbon): void {
  const { context, colour } = surface;
  const { firstBlock, size: whole } = columns.segmentsColumns;
  const { offset, size, requested, use } = columns.blocksColumns;
  const [page, free] = [colour("page"), colour("line")];
  const fills = { [FREE]: "", [PENDING]: colour("label"), [TAKEN]: colour("python") } as Record<number, string>;
  context.font = "600 12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = colour("dim");
  for (const { pool, top } of ribbon.labels) {
    const { name = "", reserved = 0 } = state.pools[pool] ?? {};
    context.fillText(`${poolWords(name)}, ${bytesText(reserved)}`, 0, top + 10);
  }
  const bySegment = piecesBySegment(ribbon.pieces, whole.length);
  for (const [segment, pieces] of bySegment.entries()) {
    context.fillStyle = free;
    fillBoxes(context, pieces);
    for (let block = firstBlock[segment]!; block < firstBlock[segment + 1]!; block++) {
      const fill = fills[use[block]!]!;
      if (fill === "") continue;
      const [from, to] = [offset[block]!, offset[block]! + size[block]!];
      context.fillStyle = fill;
      context.globalAlpha = 0.5;
      const boxes = boxesOf(pieces, from, to);
      fillBoxes(context, boxes);
      context.globalAlpha = 1;
      fillBoxes(context, requested[block]! < size[block]! ? boxesOf(pieces, from, from + requested[block]!) : boxes);
      separate(context, boxes.at(-1), page);
    }
  }
}

function piecesBySegment(pieces: Piece[], segments: number): Piece[][] {
  const all: Piece[][] = Array.from({ length: segments }, () => []);
  for (const piece of pieces) all[piece.segment]!.push(piece);
  return all;
}

function fillBoxes(context: CanvasRenderingContext2D, boxes: RibbonBox[]): void {
  for (const { left, top, width } of boxes) context.fillRect(left, top, width, ROW);
}

/** Draws a line after a block, if it can be distinguished from the next one. */
function separate(context: CanvasRenderingContext2D, box: RibbonBox | undefined, colour: string): void {
  if (!box || box.width < 2) return;
  context.fillStyle = colour;
  context.fillRect(box.left + box.width - 0.5, box.top, 0.5, ROW);
}
