// Memory over time, and the stacks that allocated it.

import type { DeviceMemory, FrameIndex } from "../../shared/format";
import type { Filter, Selection } from "../../shared/selection";
import { type FlameLayout, type LayoutRequest, layoutOf } from "../flame/layout";
import { flameTreeOf, keptFor } from "../flame/methods";
import type { FlameTree } from "../flame/tree";
import type { Context } from "../methods";
import { viewed } from "../selected";
import { statisticsOf } from "../statistics";
import type { CallTree } from "../tree";
import { type CurveColumns, hostCurve, processCurve, withMoments } from "./curve";
import { Moments } from "./moments";
import { type FlatColumns, flatRows, type MemoryOrder, MemoryTree, type PathRows } from "./rows";
import { type SegmentColumns, segmentsOf } from "./segments";
import { Stacks, shownFrames } from "./stacks";

/** The selected memory: that of a measure, live memory at a moment, or the change between two moments. */
export type MemoryPart =
  | { kind: "measure"; measure: "peak" | "live" | "temporary" | "bytes" }
  | { kind: "moment"; at: number }
  | { kind: "growth"; from: number; to: number };

export interface MemoryQuestion {
  selection: Selection;
  part: MemoryPart;
}

export interface MemoryCurve {
  curveColumns: CurveColumns;
  /** Live memory at the moments that can be selected. */
  momentsColumns: { bytes: Float64Array; blocks: Float64Array };
}

export interface FlatMemory {
  total: number;
  flatColumns: FlatColumns;
}

export function memoryMethods({ report, trees }: Context) {
  const moments = new Map<number, Promise<Moments>>();
  const stacks = new Map<number, Promise<Stacks>>();
  const made = new Map<string, Promise<MemoryTree>>();
  const flames = new Map<string, Promise<FlameTree>>();

  function deviceOf(device: number): DeviceMemory | undefined {
    return report.head.memory?.devices.find((of) => of.device === device);
  }

  function momentsOf(device: number): Promise<Moments> {
    const info = deviceOf(device)?.moments;
    if (!info) return Promise.reject(new Error("the recording has no moments of this memory"));
    let found = moments.get(device);
    if (!found) {
      found = Promise.all([report.columns(info.tree), report.columns(info.rows)]).then(([tree, rows]) =>
        Moments.decode(info, tree, rows),
      );
      moments.set(device, found);
    }
    return found;
  }

  function stacksOf(device: number): Promise<Stacks> {
    const block = deviceOf(device)?.host?.stacks;
    if (block === undefined) return Promise.reject(new Error("the recording has no stacks of this memory's host"));
    let found = stacks.get(device);
    if (!found) {
      found = report.columns(block).then((columns) => new Stacks(columns));
      stacks.set(device, found);
    }
    return found;
  }

  async function treeOf({ selection, part }: MemoryQuestion, lines: boolean): Promise<CallTree> {
    if (part.kind === "measure") return trees.get({ ...selection, measure: part.measure }, { lines });
    const all = await momentsOf(selection.device);
    const tree = part.kind === "moment" ? all.at(part.at) : all.growth(part.from, part.to);
    return viewed(report, [tree], { ...selection, measure: "peak" }, lines);
  }

  function memoryTree(question: MemoryQuestion): Promise<MemoryTree> {
    return keptFor(made, JSON.stringify(question), async () => new MemoryTree(await treeOf(question, false)));
  }

  return {
    /** Returns the curve of a device, or of one of its pools. */
    async memoryCurve(device: number, pool: number | null = null): Promise<MemoryCurve | null> {
      const info = deviceOf(device);
      const block = pool === null ? info?.curve : info?.host?.pools[pool]?.curve;
      if (!info || block === null || block === undefined) return null;
      const columns = await report.columns(block);
      const none = { bytes: new Float64Array(0), blocks: new Float64Array(0) };
      const totals = info.moments ? (await momentsOf(device)).totals() : none;
      // A host's curve has the maximum of each interval: inserted moments would interrupt it.
      const curve = info.host
        ? hostCurve(columns)
        : withMoments(processCurve(columns), info.moments?.times ?? [], totals.bytes);
      return { curveColumns: curve, momentsColumns: totals };
    },

    /** Returns the visible frames of a stack of a host's allocator, outermost first. */
    async memoryStack(device: number, node: number, filter: Filter): Promise<FrameIndex[]> {
      return shownFrames(report.names, (await stacksOf(device)).frames(node), filter);
    },

    /** Returns the segments of an allocator state, by its index in `HostMemory.states`; `null` if it has none. */
    async memorySegments(device: number, state: number): Promise<SegmentColumns | null> {
      const rows = deviceOf(device)?.host?.states[state]?.rows ?? null;
      return rows === null ? null : segmentsOf(await report.columns(rows));
    },

    /** Rows by call path below the open nodes; `null` opens the path with the most memory. */
    async memoryRows(question: MemoryQuestion, open: number[] | null, order: MemoryOrder): Promise<PathRows> {
      return (await memoryTree(question)).rows(open, order);
    },

    /** Returns self cost by function or by line. */
    async memoryFlat(question: MemoryQuestion, by: "functions" | "lines"): Promise<FlatMemory> {
      const isByLine = by === "lines";
      const tree = isByLine ? await treeOf(question, true) : (await memoryTree(question)).tree;
      const { functions, frames } = report.names;
      const items = isByLine ? frames.function.length : functions.name.length;
      return { total: tree.total[0]!, flatColumns: flatRows(tree, statisticsOf(tree, items).functions) };
    },

    async memoryFlame(question: MemoryQuestion, request: LayoutRequest): Promise<FlameLayout> {
      const tree = await keptFor(flames, JSON.stringify(question), async () =>
        flameTreeOf((await memoryTree(question)).tree, { mode: "heavy", fold: false }),
      );
      return layoutOf(tree, request);
    },
  };
}
