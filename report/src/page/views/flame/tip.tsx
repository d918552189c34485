// The description of a box of the flame graph, for the pointer and for screen readers.

import { ALL, type FlameLayout, MANY } from "../../../engine/flame/layout";
import type { MeasureName } from "../../../shared/format";
import { functionName, placeOf } from "../../../shared/names";
import { costText, countedText, countText, shareText } from "../../../shared/units";
import { names } from "../../state";

/** Returns a part of a whole; empty if the whole is 0. */
export function share(part: number, whole: number): string {
  return whole > 0 ? shareText(part / whole) : "";
}

export function boxName(layout: FlameLayout, box: number): string {
  const of = layout.boxesColumns.function[box]!;
  if (of === ALL) return "All";
  if (of === MANY) return `${countText(layout.boxesColumns.calls[box]!)} small boxes`;
  const times = layout.boxesColumns.times[box]!;
  return times > 1 ? `${functionName(names(), of)} ×${times}` : functionName(names(), of);
}

export function FlameTip({ layout, box, measure }: { layout: FlameLayout; box: number; measure: MeasureName }) {
  const { function: functions, total, self, calls, above, times } = layout.boxesColumns;
  const of = functions[box]!;
  const caller = above[box]!;
  const ofAll = share(total[box]!, layout.total);
  if (of === MANY) {
    return (
      <>
        <strong>{boxName(layout, box)}</strong>
        <div>
          {costText(measure, total[box]!)}, {ofAll}. Zoom in to see them.
        </div>
      </>
    );
  }
  return (
    <>
      <strong>{boxName(layout, box)}</strong>
      {of !== ALL && <div class="place">{placeOf(names(), of)}</div>}
      <dl>
        <dt>Total</dt>
        <dd>
          {costText(measure, total[box]!)} <span class="share">{ofAll}</span>
        </dd>
        <dt>Self</dt>
        <dd>
          {costText(measure, self[box]!)} <span class="share">{share(self[box]!, layout.total)}</span>
        </dd>
        {of !== ALL && (
          <>
            <dt class="counted">{countedText(measure)}</dt>
            <dd>{countText(calls[box]!)}</dd>
          </>
        )}
        {caller !== box && functions[caller] !== ALL && (
          <>
            <dt>Of {boxName(layout, caller)}</dt>
            <dd>{share(total[box]!, total[caller]!)}</dd>
          </>
        )}
        {times[box]! > 1 && (
          <>
            <dt>Recursion</dt>
            <dd>{times[box]} deep</dd>
          </>
        )}
      </dl>
    </>
  );
}

export function describeBox(layout: FlameLayout, box: number, measure: MeasureName): string {
  const { function: functions, total, self, calls } = layout.boxesColumns;
  const of = functions[box]!;
  const parts = [boxName(layout, box), `${costText(measure, total[box]!)} in total`];
  if (share(total[box]!, layout.total)) parts.push(share(total[box]!, layout.total));
  if (of === MANY) return `${parts.join(", ")}.`;
  parts.push(`${costText(measure, self[box]!)} self`);
  if (of !== ALL) parts.push(`${countText(calls[box]!)} ${countedText(measure)}`);
  return `${parts.join(", ")}.`;
}
