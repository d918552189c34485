// Boxes of a flame graph: their callers, order and positions. The children of a node are made when they are
// first requested, so that the cost of a tree of a million nodes depends on what is visible.

/** The content of one box. Its source needs `members` to find its children. */
export interface Group<Members> {
  item: number;
  /** The width: never below 0, and never less than that of the children. */
  weight: number;
  self: number;
  total: number;
  calls: number;
  /** The number of nested calls that are merged into it; 1 unless recursion is folded. */
  times: number;
  members: Members;
}

/** The source of boxes. */
export interface Source<Members> {
  root(): Group<Members>;
  /** The children of a box, in the order of the tree. */
  below(group: Members): Group<Members>[];
}

/** The order of sibling boxes: by cost, or that of the tree. */
export type SiblingOrder = "heavy" | "met";

/** Columns that grow. Children of a node are consecutive, from `first`. */
export class FlameTree<Members = unknown> {
  readonly parent: number[] = [];
  readonly item: number[] = [];
  /** Where it begins, in the unit of weights; the root begins at 0. */
  readonly start: number[] = [];
  readonly weight: number[] = [];
  readonly self: number[] = [];
  readonly total: number[] = [];
  readonly calls: number[] = [];
  readonly times: number[] = [];
  private readonly members: Members[] = [];
  private readonly first: number[] = [];
  private readonly count: number[] = [];

  constructor(
    private readonly source: Source<Members>,
    readonly order: SiblingOrder,
  ) {
    this.push(0, 0, source.root());
  }

  /** Returns the children of a node: from the first number up to the second. */
  children(node: number): [number, number] {
    if (this.first[node]! < 0) this.expand(node);
    const first = this.first[node]!;
    return [first, first + this.count[node]!];
  }

  /** Returns the key by which the source finds a node. */
  membersOf(node: number): Members {
    return this.members[node]!;
  }

  /** Returns the nodes along a path of items, the root first. Missing items are skipped: another filter may hide them. */
  along(path: number[]): number[] {
    const found = [0];
    for (const item of path) {
      const [from, to] = this.children(found[found.length - 1]!);
      let node = from;
      while (node < to && this.item[node] !== item) node++;
      if (node < to) found.push(node);
    }
    return found;
  }

  private expand(node: number): void {
    const groups = this.source.below(this.members[node]!);
    if (this.order === "heavy") groups.sort((a, b) => b.weight - a.weight);
    this.first[node] = this.parent.length;
    this.count[node] = groups.length;
    let start = this.start[node]!;
    for (const group of groups) {
      this.push(node, start, group);
      start += group.weight;
    }
  }

  private push(parent: number, start: number, group: Group<Members>): void {
    this.parent.push(parent);
    this.item.push(group.item);
    this.start.push(start);
    this.weight.push(group.weight);
    this.self.push(group.self);
    this.total.push(group.total);
    this.calls.push(group.calls);
    this.times.push(group.times);
    this.members.push(group.members);
    this.first.push(-1);
    this.count.push(0);
  }
}
