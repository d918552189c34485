// The overview: the functions with the highest cost, and the cost by origin of the code.

import { type FunctionIndex, KINDS, ORIGINS, type RunInfo } from "../shared/format";
import type { Names } from "../shared/names";
import { type Selection, SHOW_DEFAULT } from "../shared/selection";
import type { Context } from "./methods";
import { statisticsOf } from "./statistics";
import type { CallTree } from "./tree";

export interface Top {
  function: FunctionIndex;
  self: number;
  total: number;
}

/** The cost by origin of the code: self costs of all frames, visible or not. */
export interface Division {
  program: number;
  libraries: number;
  native: number;
  interpreter: number;
  labels: number;
  /** The cost without a frame. */
  unknown: number;
}

export interface Overview {
  total: number;
  /** The number of functions with a cost or with calls. */
  functions: number;
  bySelf: Top[];
  byTotal: Top[];
  division: Division;
}

export function overviewMethods({ report, trees }: Context) {
  const { names } = report;
  const count = names.functions.name.length;
  return {
    async overview(selection: Selection, most: number): Promise<Overview> {
      const tree = await trees.get(selection);
      const { self, total, calls } = statisticsOf(tree, count).functions;
      const there: FunctionIndex[] = [];
      for (let of = 0; of < count; of++) if (calls[of] !== 0 || self[of] !== 0 || total[of] !== 0) there.push(of);
      const top = (by: Float64Array): Top[] =>
        there
          .filter((of) => by[of]! > 0)
          .sort((a, b) => by[b]! - by[a]! || a - b)
          .slice(0, most)
          .map((of) => ({ function: of, self: self[of]!, total: total[of]! }));
      const all = await trees.get({ ...selection, filter: { ...SHOW_DEFAULT, internals: true } });
      return {
        total: tree.total[0]!,
        functions: there.length,
        bySelf: top(self),
        byTotal: top(total),
        division: divisionOf(all, names),
      };
    },

    hidden: (selection: Selection) => trees.hidden(selection),

    async runs(): Promise<RunInfo[]> {
      return report.head.runs === null ? [] : ((await report.json(report.head.runs)) as RunInfo[]);
    },
  };
}

/** Divides the self costs of a tree of functions. Native code of a library counts as native, that of the interpreter does not. */
export function divisionOf(tree: CallTree, names: Names): Division {
  const { kind, origin } = names.functions;
  const parts = Array.from(kind, (of, at): keyof Division => {
    if (KINDS[of] === "span") return "labels";
    if (ORIGINS[origin[at]!] === "interpreter") return "interpreter";
    if (KINDS[of] === "native") return "native";
    return ORIGINS[origin[at]!] === "library" ? "libraries" : "program";
  });
  const division = { program: 0, libraries: 0, native: 0, interpreter: 0, labels: 0, unknown: tree.self[0]! };
  for (let node = 1; node < tree.length; node++) division[parts[tree.item[node]!]!] += tree.self[node]!;
  return division;
}
