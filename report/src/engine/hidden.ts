// The cost that is hidden inside libraries and the interpreter. The rules are those of `Profile::view` and `Profile::hidden` in
// `crates/stackweave-profile/src/aggregate/view.rs`.

import { ORIGINS } from "../shared/format";
import type { Names } from "../shared/names";
import type { Selection } from "../shared/selection";
import { visibleByOrigin, visibleFunctions } from "./filter";
import type { CallTree } from "./tree";

/** The cost that is hidden because of the origin of functions. What a filter hides does not count. */
export interface Hidden {
  /** The number of functions that are never visible. */
  functions: number;
  /** The self cost of hidden calls, which counts for their nearest visible callers. */
  self: number;
  /** The number of functions inside libraries that are visible because of their cost. */
  costly: number;
}

/** A program is mostly libraries if at least this share of the total is hidden. */
const MOSTLY_HIDDEN = 3 / 4;
/** In such a program, functions inside libraries with at least this share of the total as self cost are visible. */
const COSTLY = 1 / 50;

const LIBRARY = ORIGINS.indexOf("library");

/** The functions that are visible inside libraries because of their cost (1), and what remains hidden. */
export function hiddenIn(
  names: Names,
  trees: CallTree[],
  { filter, measure }: Selection,
): { isCostly: Uint8Array; hidden: Hidden } {
  const { origin } = names.functions;
  const isCostly = new Uint8Array(origin.length);
  const hidden: Hidden = { functions: 0, self: 0, costly: 0 };
  if (filter.internals) return { isCostly, hidden };
  const { isMet, isSeen, self } = hiddenFunctions(names, trees, filter);
  const total = trees.reduce((sum, tree) => sum + tree.total[0]!, 0);
  const isTime = measure === "time" || measure === "samples";
  const all = self.reduce((sum, cost) => sum + cost, 0);
  const isMostlyHidden = isTime && total > 0 && all >= total * MOSTLY_HIDDEN;
  for (let of = 0; of < origin.length; of++) {
    if (isMostlyHidden && origin[of] === LIBRARY && self[of]! >= total * COSTLY) {
      isCostly[of] = 1;
      hidden.costly++;
    } else {
      if (isMet[of] === 1 && isSeen[of] === 0) hidden.functions++;
      hidden.self += self[of]!;
    }
  }
  return { isCostly, hidden };
}

/** By function: whether the filter shows it, whether any call is visible, and the self cost of its hidden calls. */
function hiddenFunctions(names: Names, trees: CallTree[], filter: Selection["filter"]) {
  const { function: functionOf } = names.frames;
  const { origin } = names.functions;
  const shown = visibleFunctions(names, filter);
  const isMet = new Uint8Array(origin.length);
  const isSeen = new Uint8Array(origin.length);
  const self = new Float64Array(origin.length);
  for (const tree of trees) {
    const isLibrary = new Uint8Array(tree.length);
    for (let node = 1; node < tree.length; node++) {
      const of = functionOf[tree.item[node]!]!;
      const [shows, below] = visibleByOrigin(origin[of]!, isLibrary[tree.parent[node]!] === 1, false);
      isLibrary[node] = below ? 1 : 0;
      if (shown[of] === 0) continue;
      isMet[of] = 1;
      if (shows) isSeen[of] = 1;
      else self[of]! += tree.self[node]!;
    }
  }
  return { isMet, isSeen, self };
}
