// The positions of segments in a picture: one after another, in rows of the picture's width, by size. A segment that
// is longer than a row continues in the next. Each pool begins a row.

import type { SegmentColumns } from "../../../engine/memory/segments";

export const ROW = 20;
const STEP = ROW + 4;
const LABEL = 20;
const GAP = 3;
const SHORTEST = 3;

/** The part of a segment in one row. */
export interface Piece {
  segment: number;
  left: number;
  top: number;
  width: number;
  /** Its bytes, from the start of the segment. */
  from: number;
  to: number;
}

export interface Ribbon {
  pieces: Piece[];
  /** The pools, and the positions of their names. */
  labels: { pool: number; top: number }[];
  height: number;
}

/** Lays out segments, which are sorted by pool, to fill about `rows` rows. */
export function layOut({ segmentsColumns }: SegmentColumns, width: number, rows: number): Ribbon {
  const { size, pool } = segmentsColumns;
  const all = size.reduce((sum, bytes) => sum + bytes, 0);
  const ribbon: Ribbon = { pieces: [], labels: [], height: 0 };
  if (all === 0 || width <= 0) return ribbon;
  const perPixel = all / (width * rows);
  let [left, top, last] = [0, -STEP, -1];
  for (let segment = 0; segment < size.length; segment++) {
    if (pool[segment] !== last) {
      last = pool[segment]!;
      ribbon.labels.push({ pool: last, top: top + STEP });
      [left, top] = [0, top + STEP + LABEL];
    }
    let rest = Math.max(SHORTEST, size[segment]! / perPixel);
    const bytesPerPixel = size[segment]! / rest;
    if (left > 0 && left + rest > width) [left, top] = [0, top + STEP];
    for (let from = 0; rest > 1e-6; ) {
      if (left >= width) [left, top] = [0, top + STEP];
      const wide = Math.min(rest, width - left);
      rest -= wide;
      const to = rest > 1e-6 ? from + wide * bytesPerPixel : size[segment]!;
      ribbon.pieces.push({ segment, left, top, width: wide, from, to });
      [left, from] = [left + wide, to];
    }
    left += GAP;
  }
  ribbon.height = top + STEP;
  return ribbon;
}

/** Returns the block at a position; `null` if there is none. */
export function blockAt(columns: SegmentColumns, { pieces }: Ribbon, x: number, y: number): number | null {
  const piece = pieces.find(
    ({ left, top, width }) => y >= top && y < top + ROW && x >= left && x < left + Math.max(width, SHORTEST),
  );
  if (!piece) return null;
  const byte = piece.from + ((x - piece.left) / piece.width) * (piece.to - piece.from);
  const { firstBlock } = columns.segmentsColumns;
  const { offset, size } = columns.blocksColumns;
  for (let block = firstBlock[piece.segment]!; block < firstBlock[piece.segment + 1]!; block++) {
    if (byte >= offset[block]! && byte < offset[block]! + size[block]!) return block;
  }
  return null;
}

export interface RibbonBox {
  left: number;
  top: number;
  width: number;
}

/** Returns the boxes of a range of bytes of a segment, one for each row; `pieces` are those of the segment. */
export function boxesOf(pieces: Piece[], from: number, to: number): RibbonBox[] {
  const boxes: RibbonBox[] = [];
  for (let at = firstPiece(pieces, from); at < pieces.length && pieces[at]!.from < to; at++) {
    const piece = pieces[at]!;
    const [begin, end] = [Math.max(from, piece.from), Math.min(to, piece.to)];
    const perByte = piece.width / (piece.to - piece.from);
    const left = piece.left + (begin - piece.from) * perByte;
    if (begin < end) boxes.push({ left, top: piece.top, width: (end - begin) * perByte });
  }
  return boxes;
}

/** Returns the index of the first piece that ends after a byte: a segment may have many pieces, and many blocks. */
function firstPiece(pieces: Piece[], byte: number): number {
  let [low, high] = [0, pieces.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pieces[middle]!.to <= byte) low = middle + 1;
    else high = middle;
  }
  return low;
}
