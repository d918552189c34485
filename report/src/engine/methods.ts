// All methods that the page can call in the engine. Each view has a file with its own methods.

import type { Head } from "../shared/format";
import type { Names } from "../shared/names";
import { diffMethods } from "./diff/methods";
import { flameMethods } from "./flame/methods";
import { graphMethods } from "./graph/methods";
import { memoryMethods } from "./memory/methods";
import { overviewMethods } from "./overview";
import type { Report } from "./report";
import { searchMethods } from "./search";
import { SelectedTrees } from "./selected";
import { sourceMethods } from "./source";
import { tableMethods } from "./table";
import { timelineMethods } from "./timeline/methods";

/** The state that the methods work with. */
export interface Context {
  report: Report;
  trees: SelectedTrees;
}

export function methodsOf(report: Report) {
  const context: Context = { report, trees: new SelectedTrees(report) };
  return {
    /** The data that the page needs first. */
    open: (): { head: Head; names: Names } => ({ head: report.head, names: report.names }),
    ...diffMethods(context),
    ...flameMethods(context),
    ...graphMethods(context),
    ...memoryMethods(context),
    ...overviewMethods(context),
    ...searchMethods(context),
    ...sourceMethods(context),
    ...tableMethods(context),
    ...timelineMethods(context),
  };
}

export type Engine = ReturnType<typeof methodsOf>;
