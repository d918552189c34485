// The figures of the exports of a recording, and those of the engine of its page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "puppeteer-core";
import type { Table } from "../../src/engine/table";
import type { NamedAmounts } from "../../src/shared/format";
import { fileOf, functionName, type Names } from "../../src/shared/names";
import { type Filter, type Selection, SHOW_DEFAULT } from "../../src/shared/selection";
import { PAGES } from "./opened";

/** Name, file, line, calls, primitive calls, self, total. */
export type Row = [string, string | null, number | null, number, number, number, number];

interface ExpectedRange {
  startNs: number;
  endNs: number;
  rows: Row[];
}

export interface Expected {
  calls: {
    /** File, line, name, primitive calls, calls, self, total: as `pstats.Stats` has them. */
    pstats: [string, number, string, number, number, number, number][];
    everything: Row[];
    default: Row[];
    range: ExpectedRange;
    before: Row[];
    /** Spans that the export to Chrome's format has. */
    spans: number;
  };
  inside: { range: ExpectedRange };
  memory: { measures: Record<string, Row[]>; heap: Heap };
  devices: { account: DeviceAccount[]; heap: Heap[] };
}

/** The figures that the program `devices.py` keeps about its devices. */
export interface DeviceAccount {
  peak: number;
  /** The requested and the free bytes. */
  failures: [number, number][];
  state: Record<StateFigure, number> | null;
}

export type StateFigure =
  | "segments"
  | "blocks"
  | "reserved"
  | "allocated"
  | "requested"
  | "pending"
  | "free"
  | "largestFree";

/** Fields of the output of `stackweave heap --json`. */
export interface Heap {
  totals: HeapAmounts;
  threads: (HeapAmounts & { name: string })[];
  allocators: (HeapAmounts & { name: string })[];
}

export interface HeapAmounts {
  allocations: number;
  bytes: number;
  live_blocks: number;
  live_bytes: number;
  peak_blocks: number;
  peak_bytes: number;
  temporary: number;
  temporary_bytes: number;
}

export const expected = JSON.parse(readFileSync(join(PAGES, "expected.json"), "utf8")) as Expected;

export function selectionOf(
  measure: Selection["measure"],
  filter: Partial<Filter> = {},
  range: Selection["range"] = null,
): Selection {
  return { measure, device: -1, threads: null, range, filter: { ...SHOW_DEFAULT, ...filter } };
}

type Amounts = Pick<NamedAmounts, "peak" | "live" | "allocated" | "temporary">;

export function amountsOf({ peak, live, allocated, temporary }: Amounts): number[] {
  return [peak, live, allocated, temporary].flatMap(({ bytes, blocks }) => [bytes, blocks]);
}

export function amountsOfHeap(of: HeapAmounts): number[] {
  const [peak, live] = [
    [of.peak_bytes, of.peak_blocks],
    [of.live_bytes, of.live_blocks],
  ];
  return [...peak!, ...live!, of.bytes, of.allocations, of.temporary_bytes, of.temporary];
}

export const EVERYTHING: Partial<Filter> = { internals: true };

/** The engine's answers, with columns as plain arrays. */
export function queried<T>(page: Page, method: string, ...of: unknown[]): Promise<T> {
  return page.evaluate(
    async (name, given) => {
      type Query = (method: string, ...of: unknown[]) => Promise<unknown>;
      const answer = await (globalThis as unknown as { stackweave: { query: Query } }).stackweave.query(name, ...given);
      const isColumn = (value: unknown): value is Uint32Array => ArrayBuffer.isView(value);
      return JSON.parse(JSON.stringify(answer, (_, value) => (isColumn(value) ? Array.from(value) : value)));
    },
    method,
    of,
  ) as Promise<T>;
}

/** Returns the functions of a selection as rows. */
export async function rowsOf(page: Page, selection: Selection): Promise<Row[]> {
  const { names } = await queried<{ names: Names }>(page, "open");
  const table = await queried<Table>(page, "table", selection);
  const { function: functions, calls, primitiveCalls, self, total } = table.functionsColumns;
  return Array.from(functions, (of, row): Row => {
    const line = names.functions.line[of]!;
    const where = [fileOf(names, of) ?? null, line > 0 ? line : null] as const;
    return [functionName(names, of), ...where, calls[row]!, primitiveCalls[row]!, self[row]!, total[row]!];
  });
}

function inOrder<T>(rows: T[]): T[] {
  return rows
    .map((row) => [JSON.stringify(row), row] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, row]) => row);
}

/** Asserts that the rows are the same in any order. */
export function assertSameRows<T>(actual: T[], wanted: T[], what: string): void {
  assert.ok(wanted.length > 3, `${what}: there is something to compare`);
  assert.deepEqual(inOrder(actual), inOrder(wanted), what);
}
