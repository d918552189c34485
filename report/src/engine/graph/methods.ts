// The call graph: functions as boxes, calls as arrows.

import type { MeasureName } from "../../shared/format";
import { fileOf, functionName, moduleOf } from "../../shared/names";
import type { Selection } from "../../shared/selection";
import { countedText, countText, shareText } from "../../shared/units";
import type { Context } from "../methods";
import { statisticsOf } from "../statistics";
import { type GraphDirection, layOut, type PlacedBox, type Size, type Way } from "./layout";
import { pathsThrough } from "./paths";
import { type GraphCalls, type GraphFunction, type PrunedGraph, pruneGraph } from "./prune";
import { boxSize, labelSize, shortened } from "./text-size";

export interface GraphBox extends GraphFunction, PlacedBox {
  /** The name, cut to the box, the location, and the lines below it. */
  title: string;
  place: string;
  lines: string[];
}

export interface GraphArrow extends GraphCalls, Way {
  text: string;
}

export interface CallGraph extends Size {
  direction: GraphDirection;
  /** The total cost. */
  total: number;
  boxes: GraphBox[];
  arrows: GraphArrow[];
  functionsLeftOut: number;
  /** Whether functions are left out because there are too many, and not because their cost is too low. */
  isFull: boolean;
  edgesLeftOut: number;
}

export interface GraphQuestion {
  /** Functions with a smaller share of the shown cost are left out. */
  least: number;
  /** Only paths through this function. */
  focus: number | null;
  direction: GraphDirection;
}

/** The content and the direction of a graph. */
interface Drawing {
  total: number;
  measure: MeasureName;
  direction: GraphDirection;
}

/** The maximum number of boxes. */
const MOST_FUNCTIONS = 150;
/** With more arrows than this, only the heavier ones get a label. */
const FEW_ARROWS = 60;
const LABEL_SHARE = 0.02;

export function graphMethods({ report, trees }: Context) {
  const { names } = report;
  return {
    async graph(selection: Selection, { least, focus, direction }: GraphQuestion): Promise<CallGraph> {
      const all = await trees.get(selection);
      const total = all.total[0]!;
      const tree = focus === null ? all : pathsThrough(all, focus);
      const statistics = statisticsOf(tree, names.functions.name.length);
      const there = Uint32Array.from(new Set(tree.item.subarray(1)));
      const pruned = pruneGraph(statistics, there, {
        least: least * Math.abs(tree.total[0]!),
        most: MOST_FUNCTIONS,
        keep: focus,
      });
      return drawn(pruned, { total, measure: selection.measure, direction });
    },
  };

  function drawn(pruned: PrunedGraph, { total, measure, direction }: Drawing): CallGraph {
    const share = (cost: number) => (total === 0 ? 0 : cost / total);
    const words = countedText(measure);
    const texts = pruned.functions.map(({ of, self, total, calls }) => ({
      title: shortened(functionName(names, of)),
      place: shortPlace(of),
      lines: [
        `${shareText(share(total))} total, ${shareText(share(self))} self`,
        calls === 0 ? "" : `${countText(calls)} ${calls === 1 ? words.slice(0, -1) : words}`,
      ].filter((line) => line !== ""),
    }));
    const counted = (calls: number) =>
      measure === "time" ? `  ${countText(calls)}×` : calls === 0 ? "" : `  ${countText(calls)} ${words}`;
    const isFew = pruned.edges.length <= FEW_ARROWS;
    const labels = pruned.edges.map((edge) => `${shareText(share(edge.total))}${counted(edge.calls)}`);
    const labelSizes = pruned.edges.map((edge, place) =>
      isFew || Math.abs(share(edge.total)) >= LABEL_SHARE ? labelSize(labels[place]!) : null,
    );
    const { boxes, ways, width, height } = layOut(pruned, texts.map(boxSize), labelSizes, direction);
    return {
      total,
      direction,
      width,
      height,
      boxes: pruned.functions.map((each, place) => ({ ...each, ...boxes[place]!, ...texts[place]! })),
      arrows: pruned.edges.map((edge, place) => ({ ...edge, ...ways[place]!, text: labels[place]! })),
      functionsLeftOut: pruned.functionsLeftOut,
      isFull: pruned.isFull,
      edgesLeftOut: pruned.edgesLeftOut,
    };
  }

  /** Returns the last part of the path, and the line. */
  function shortPlace(of: number): string {
    const path = fileOf(names, of) ?? moduleOf(names, of) ?? "";
    const line = fileOf(names, of) === undefined ? 0 : names.functions.line[of]!;
    const file = path.slice(path.lastIndexOf("/") + 1);
    return shortened(line > 0 ? `${file}:${line}` : file);
  }
}
