// Changes by path: the width of a box is its cost on one side, its colour the change.

import type { DiffLayout } from "../../../engine/diff/methods";
import { ALL, MANY } from "../../../engine/flame/layout";
import { placeOf } from "../../../shared/names";
import { countedText, countText } from "../../../shared/units";
import { addressed } from "../../address";
import { isDark } from "../../colours";
import { query } from "../../engine";
import { measure, names, selection } from "../../state";
import { FlameChart, type Skin } from "../flame/chart";
import { boxName } from "../flame/tip";
import {
  type Change,
  changeColour,
  difference,
  differenceText,
  growthOf,
  isShares,
  isTotal,
  onlyText,
  shownChange,
  sideText,
  widthSide,
} from "./state";

const zoom = { path: addressed("diff.path", "", { isStep: true }), span: addressed("diff.span", "") };

export function DiffFlame() {
  const of = selection.value;
  const options = { width: widthSide(), shares: isShares() };
  return (
    <FlameChart
      label="Changes by path. Arrow keys go from box to box, Enter zooms, Backspace zooms out."
      treeKey={JSON.stringify([of, options])}
      layOut={(request) => query("diffFlame", of, options, request)}
      zoom={zoom}
      isUpward={false}
      skin={skinOf(isTotal(), isDark())}
      empty={`The selection has no cost ${options.width === "after" ? "after" : "before"} the change.`}
    />
  );
}

function skinOf(byTotal: boolean, dark: boolean): Skin<DiffLayout> {
  return {
    colour: (layout, box) => {
      const greatest = byTotal ? layout.greatestTotal : layout.greatestSelf;
      const by = difference(shownChange(byTotal ? totalOf(layout, box) : selfOf(layout, box), layout.totals));
      return changeColour(greatest > 0 ? by / greatest : 0, dark);
    },
    text: (layout, box) => {
      const only = isBox(layout, box) ? onlyText(layout.sidesColumns.sides[box]!) : "";
      return only === "" ? boxName(layout, box) : `${boxName(layout, box)} (${only})`;
    },
    cost: (layout, box) => {
      const of = layout.boxesColumns.function[box];
      // The shares of the root are 100 % on both sides.
      if (of === MANY || (of === ALL && isShares())) return "";
      return differenceText(shownChange(byTotal ? totalOf(layout, box) : selfOf(layout, box), layout.totals));
    },
    tip: (layout, box) => <DiffTip layout={layout} box={box} />,
    describe,
    isMarked: (layout, box) => onlyText(layout.sidesColumns.sides[box]!) !== "",
  };
}

function isBox(layout: DiffLayout, box: number): boolean {
  return layout.boxesColumns.function[box] !== MANY;
}

function selfOf({ sidesColumns: { beforeSelf, afterSelf } }: DiffLayout, box: number): Change {
  return { before: beforeSelf[box]!, after: afterSelf[box]! };
}

function totalOf({ sidesColumns: { beforeTotal, afterTotal } }: DiffLayout, box: number): Change {
  return { before: beforeTotal[box]!, after: afterTotal[box]! };
}

function describe(layout: DiffLayout, box: number): string {
  if (!isBox(layout, box)) return `${boxName(layout, box)}.`;
  const sides = layout.sidesColumns.sides[box]!;
  const parts = (["Total", "Self"] as const).map((what) => {
    const change = shownChange(what === "Total" ? totalOf(layout, box) : selfOf(layout, box), layout.totals);
    const growth = growthOf(change, sides);
    return `${what} ${sideText(change.before)} before, ${sideText(change.after)} after${growth ? `, ${growth}` : ""}`;
  });
  return `${boxName(layout, box)}. ${parts.join(". ")}.`;
}

function DiffTip({ layout, box }: { layout: DiffLayout; box: number }) {
  const of = layout.boxesColumns.function[box]!;
  if (of === MANY) {
    return (
      <>
        <strong>{boxName(layout, box)}</strong>
        <div>Zoom in to see them.</div>
      </>
    );
  }
  const { sides, beforeCalls, afterCalls } = layout.sidesColumns;
  const rows = [
    { label: "Total", change: shownChange(totalOf(layout, box), layout.totals) },
    { label: "Self", change: shownChange(selfOf(layout, box), layout.totals) },
  ];
  return (
    <>
      <strong>{boxName(layout, box)}</strong>
      {of !== ALL && <div class="place">{placeOf(names(), of)}</div>}
      <table class="diff-tip">
        <thead>
          <tr>
            <td />
            <th>Before</th>
            <th>After</th>
            <th>Change</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {rows.map(({ label, change }) => (
            <tr key={label} class={changeClass(difference(change))}>
              <th>{label}</th>
              <td>{sideText(change.before)}</td>
              <td>{sideText(change.after)}</td>
              <td class="by">{differenceText(change)}</td>
              <td class="by">{growthOf(change, sides[box]!)}</td>
            </tr>
          ))}
          {of !== ALL && (
            <tr>
              <th class="counted">{countedText(measure.value)}</th>
              <td>{countText(beforeCalls[box]!)}</td>
              <td>{countText(afterCalls[box]!)}</td>
            </tr>
          )}
        </tbody>
      </table>
    </>
  );
}

export function changeClass(by: number): string {
  return by > 0 ? "more" : by < 0 ? "less" : "";
}
