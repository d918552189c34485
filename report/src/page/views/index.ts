// The views, in the order of their tabs.

import type { ComponentType } from "preact";
import type { Head } from "../../shared/format";
import type { ViewName } from "../state";
import { DiffView } from "./diff/view";
import { FlameView } from "./flame/view";
import { GraphView } from "./graph/view";
import { MemoryView } from "./memory/view";
import { OverviewView } from "./overview/view";
import { SourceView } from "./source/view";
import { TableView } from "./table/view";
import { TimelineView } from "./timeline/view";

export interface ViewEntry {
  name: ViewName;
  label: string;
  component: ComponentType;
  /** Whether a report has data for it. */
  isThere(head: Head): boolean;
}

export const VIEWS: ViewEntry[] = [
  { name: "overview", label: "Overview", component: OverviewView, isThere: () => true },
  { name: "flame", label: "Flame graph", component: FlameView, isThere: (head) => head.trees.length > 0 },
  { name: "timeline", label: "Timeline", component: TimelineView, isThere: (head) => head.timeline !== null },
  { name: "table", label: "Functions", component: TableView, isThere: (head) => head.trees.length > 0 },
  { name: "graph", label: "Call graph", component: GraphView, isThere: (head) => head.trees.length > 0 },
  { name: "memory", label: "Memory", component: MemoryView, isThere: (head) => head.memory !== null },
  { name: "source", label: "Source", component: SourceView, isThere: (head) => head.sources.length > 0 },
  { name: "diff", label: "Changes", component: DiffView, isThere: (head) => head.before !== null },
];
