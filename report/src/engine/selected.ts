// Trees of the selection: threads merged, lines of a function merged, and only the visible frames.

import type { Head, MeasureName, TreeInfo } from "../shared/format";
import type { Selection } from "../shared/selection";
import { visibleByOrigin, visibleFunctions } from "./filter";
import { type Hidden, hiddenIn } from "./hidden";
import type { Report } from "./report";
import { RangeTrees } from "./timeline/range-tree";
import { type CallTree, TreeBuilder } from "./tree";

export type Side = "after" | "before";

/** Builds trees of selections, and keeps the newest ones. */
export class SelectedTrees {
  private readonly kept = new Map<string, Promise<CallTree>>();
  private readonly ranges: RangeTrees | null;

  constructor(private readonly report: Report) {
    const { timeline } = report.head;
    this.ranges = timeline ? new RangeTrees(timeline, report.tiles) : null;
  }

  /** Returns the tree of a selection: of functions, or of frames if `lines` are distinguished. */
  get(selection: Selection, { lines = false, side = "after" as Side } = {}): Promise<CallTree> {
    const key = JSON.stringify([selection, lines, side]);
    let tree = this.kept.get(key);
    if (!tree) {
      tree = this.make(selection, lines, side);
      this.kept.set(key, tree);
      tree.catch(() => this.kept.delete(key));
      const oldest = this.kept.size > 12 && this.kept.keys().next().value;
      if (oldest) this.kept.delete(oldest);
    }
    return tree;
  }

  /** The cost that the view of a selection hides inside libraries and the interpreter, and the total. */
  async hidden(selection: Selection): Promise<Hidden & { total: number }> {
    const trees = await this.trees(selection, "after");
    const total = trees.reduce((sum, tree) => sum + tree.total[0]!, 0);
    return { ...hiddenIn(this.report.names, trees, selection).hidden, total };
  }

  private async make(selection: Selection, lines: boolean, side: Side): Promise<CallTree> {
    return viewed(this.report, await this.trees(selection, side), selection, lines);
  }

  /** The trees of a selection with all frames, one or more for each thread. */
  private async trees(selection: Selection, side: Side): Promise<CallTree[]> {
    const range = chosenRange(this.report.head, selection, side);
    if (range && this.ranges) return this.ranges.get(range, selection.threads);
    return Promise.all(treesOf(this.report.head, selection, side).map((info) => this.report.tree(info)));
  }
}

/** Returns the trees of a report that belong to a selection. */
export function treesOf(head: Head, selection: Selection, side: Side): TreeInfo[] {
  const measure = storedMeasure(selection.measure);
  // The recording before a change has other threads, which can't be selected.
  const takes = (info: TreeInfo) =>
    selection.threads === null ||
    side === "before" ||
    (info.thread !== null && selection.threads.includes(info.thread));
  return head.trees.filter(
    (info) => info.measure === measure && info.device === selection.device && info.side === side && takes(info),
  );
}

/** Returns the selected range, if it applies: it applies only to times, and not to the recording before a change. */
export function chosenRange(head: Head, { measure, range }: Selection, side: Side): Selection["range"] {
  if (range === null || measure !== "time" || side !== "after" || !head.timeline) return null;
  return range[0] <= 0 && range[1] > head.durationNs ? null : range;
}

/** Returns the measure whose tree is stored: allocations are the calls in the tree of bytes. */
export function storedMeasure(measure: MeasureName): MeasureName {
  return measure === "allocations" ? "bytes" : measure;
}

/** Merges trees of frames into one, as a selection shows it. */
export function viewed(report: Report, trees: CallTree[], selection: Selection, lines: boolean): CallTree {
  const { filter, measure } = selection;
  const { function: functionOf } = report.names.frames;
  const { origin } = report.names.functions;
  const seen = visibleFunctions(report.names, filter);
  const { isCostly } = hiddenIn(report.names, trees, selection);
  const builder = new TreeBuilder(lines);
  const movesCalls = measure !== "time";
  for (const tree of trees) {
    const { parent, item, calls, self, length } = tree;
    const place = new Uint32Array(length);
    const isLibrary = new Uint8Array(length);
    for (let node = 0; node < length; node++) {
      let counted = calls[node]!;
      if (node > 0) {
        const above = parent[node]!;
        const frame = item[node]!;
        const of = functionOf[frame]!;
        const [shows, below] = visibleByOrigin(origin[of]!, isLibrary[above] === 1, filter.internals);
        isLibrary[node] = below ? 1 : 0;
        const isSeen = (shows || isCostly[of] === 1) && seen[of] === 1;
        place[node] = isSeen ? builder.child(place[above]!, lines ? frame : of) : place[above]!;
        if (!isSeen && !movesCalls) counted = 0;
      }
      builder.add(place[node]!, counted, measure === "allocations" ? counted : self[node]!);
    }
  }
  return builder.finish();
}
