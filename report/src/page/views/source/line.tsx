// One line of a file.

import type { LineCalls } from "../../../engine/call-lines";
import type { FunctionCost } from "../../../engine/source";
import { costText, shareText } from "../../../shared/units";
import { measure } from "../../state";
import { type Open, type Token, tokensOf } from "./python";
import { CalledTags, FunctionTag } from "./tags";

export interface LineCost {
  self: number;
  total: number;
  isWhole: boolean;
}

interface Properties {
  line: number;
  text: string;
  /** The open strings and brackets before the line; `undefined` if the text is not Python. */
  open: Open | undefined;
  cost: LineCost | undefined;
  all: number;
  functions: FunctionCost[] | undefined;
  /** The calls from the line; `null` if the calls of lines are unknown. */
  calls: LineCalls | undefined | null;
  isCurrent: boolean;
}

export function LineRow({ line, text, open, cost, all, functions, calls, isCurrent }: Properties) {
  return (
    <tr aria-rowindex={line + 1} class={isCurrent ? "current" : ""} data-line={line}>
      <Amount cost={cost?.self} all={all} />
      <Amount cost={cost?.total} all={all} />
      <th scope="row">{line}</th>
      <td class="code">
        {open ? tokensOf(text, open).map(partOf) : text}
        {functions?.map((of) => (
          <FunctionTag key={of.function} of={of} all={all} />
        ))}
        {cost?.isWhole && (
          <span class="tag" title="The cost of the function's lines was not recorded">
            {calls === null ? "whole function" : "self cost of the whole function"}
          </span>
        )}
        {calls && <CalledTags calls={calls} all={all} />}
      </td>
    </tr>
  );
}

function partOf({ text, kind }: Token, at: number) {
  return kind === "" ? (
    text
  ) : (
    <span key={at} class={kind}>
      {text}
    </span>
  );
}

/** Shows a cost. The heat is the share of the total, not of the file, so a cheap file stays cool. */
function Amount({ cost, all }: { cost: number | undefined; all: number }) {
  if (!cost) return <td class="heat" />;
  const share = all > 0 ? Math.max(0, Math.min(1, cost / all)) : 0;
  return (
    <td class="heat" title={costText(measure.value, cost)}>
      <span class="fill" style={{ opacity: 0.05 + 0.4 * Math.sqrt(share) }} />
      <span class="amount">{costText(measure.value, cost)}</span>
      <span class="share">{all > 0 ? shareText(share) : ""}</span>
    </td>
  );
}
