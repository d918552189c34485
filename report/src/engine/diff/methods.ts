// Changes between two recordings: by path as a flame graph, and by function.

import type { Selection } from "../../shared/selection";
import { type FlameLayout, type LayoutRequest, layoutOf } from "../flame/layout";
import { keptFor } from "../flame/methods";
import { topDown } from "../flame/sources";
import { FlameTree } from "../flame/tree";
import type { Context } from "../methods";
import type { Side } from "../selected";
import { statisticsOf } from "../statistics";
import type { CallTree } from "../tree";
import { AFTER, BEFORE, type DiffTree, diffTreeOf, greatestChange, scalesOf } from "./tree";

export interface DiffOptions {
  /** The side that determines the widths of boxes. */
  width: Side;
  /** Whether costs are compared as shares of each side's total. */
  shares: boolean;
}

export interface DiffLayout extends FlameLayout {
  totals: [before: number, after: number];
  /** The greatest changes of paths, which get the full colour. */
  greatestSelf: number;
  greatestTotal: number;
  /** By box. */
  sidesColumns: DiffColumns;
}

/** Absolute costs, never shares. */
export interface DiffColumns {
  beforeSelf: Float64Array;
  afterSelf: Float64Array;
  beforeTotal: Float64Array;
  afterTotal: Float64Array;
  beforeCalls: Float64Array;
  afterCalls: Float64Array;
  /** `BEFORE`, `AFTER`, or both. */
  sides: Uint8Array;
}

export interface DiffTable {
  totals: [before: number, after: number];
  functionsColumns: DiffColumns & { function: Uint32Array };
}

interface DiffFlame {
  tree: DiffTree;
  flame: FlameTree<number>;
}

export function diffMethods({ report, trees }: Context) {
  const merged = new Map<string, Promise<DiffTree>>();
  const flames = new Map<string, Promise<DiffFlame>>();

  async function sidesOf(selection: Selection): Promise<[CallTree, CallTree]> {
    const whole = comparable(selection);
    return [await trees.get(whole, { side: "before" }), await trees.get(whole)];
  }

  function flameOf(selection: Selection, width: Side): Promise<DiffFlame> {
    return keptFor(flames, JSON.stringify([selection, width]), async () => {
      const tree = await keptFor(merged, JSON.stringify(selection), async () =>
        diffTreeOf(...(await sidesOf(selection))),
      );
      return { tree, flame: new FlameTree(topDown(tree[width]), "heavy") };
    });
  }

  return {
    async diffFlame(selection: Selection, options: DiffOptions, request: LayoutRequest): Promise<DiffLayout> {
      const { tree, flame } = await flameOf(comparable(selection), options.width);
      return diffLayoutOf(tree, flame, options.shares, request);
    },

    async diffTable(selection: Selection): Promise<DiffTable> {
      const [before, after] = await sidesOf(selection);
      return diffTableOf(before, after, report.names.functions.name.length);
    },
  };
}

/** Threads and times of the recordings do not correspond: everything of both is compared. */
function comparable(selection: Selection): Selection {
  return { ...selection, threads: null, range: null };
}

export function diffLayoutOf(
  tree: DiffTree,
  flame: FlameTree<number>,
  isShares: boolean,
  request: LayoutRequest,
): DiffLayout {
  const { before, after, sides } = tree;
  const layout = layoutOf(flame as FlameTree, request);
  const nodes = layout.boxesColumns.node.map((node) => flame.membersOf(node));
  const pick = (column: Float64Array) => Float64Array.from(nodes, (node) => column[node]!);
  const totals: [number, number] = [before.total[0]!, after.total[0]!];
  const scales = scalesOf(...totals, isShares);
  return {
    ...layout,
    totals,
    greatestSelf: greatestChange(before.self, after.self, scales),
    greatestTotal: greatestChange(before.total, after.total, scales),
    sidesColumns: {
      beforeSelf: pick(before.self),
      afterSelf: pick(after.self),
      beforeTotal: pick(before.total),
      afterTotal: pick(after.total),
      beforeCalls: pick(before.calls),
      afterCalls: pick(after.calls),
      sides: Uint8Array.from(nodes, (node) => sides[node]!),
    },
  };
}

/** Returns the functions of two trees with `count` functions. */
export function diffTableOf(before: CallTree, after: CallTree, functions: number): DiffTable {
  const there = new Uint8Array(functions);
  for (const of of before.item.subarray(1)) there[of]! |= BEFORE;
  for (const of of after.item.subarray(1)) there[of]! |= AFTER;
  const rows: number[] = [];
  for (let of = 0; of < functions; of++) if (there[of]) rows.push(of);
  const first = statisticsOf(before, functions).functions;
  const second = statisticsOf(after, functions).functions;
  const pick = (column: Float64Array) => Float64Array.from(rows, (of) => column[of]!);
  return {
    totals: [before.total[0]!, after.total[0]!],
    functionsColumns: {
      function: Uint32Array.from(rows),
      beforeSelf: pick(first.self),
      afterSelf: pick(second.self),
      beforeTotal: pick(first.total),
      afterTotal: pick(second.total),
      beforeCalls: pick(first.calls),
      afterCalls: pick(second.calls),
      sides: Uint8Array.from(rows, (of) => there[of]!),
    },
  };
}
