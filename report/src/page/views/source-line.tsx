// One line of a file.

import type { FunctionCost } from "../../engine/source";
import { functionName } from "../../shared/names";
import { costText, shareText } from "../../shared/units";
import { useFound } from "../found";
import { measure, names, select, selected } from "../state";
import { type Open, type Token, tokensOf } from "./source-python";
import { Chip } from "./table-cells";

export interface LineCost {
  own: number;
  total: number;
  isWhole: boolean;
}

interface Properties {
  line: number;
  text: string;
  /** What is open before the line; `undefined` if the text is not Python. */
  open: Open | undefined;
  cost: LineCost | undefined;
  all: number;
  functions: FunctionCost[] | undefined;
  isCurrent: boolean;
}

export function LineRow({ line, text, open, cost, all, functions, isCurrent }: Properties) {
  return (
    <tr aria-rowindex={line + 1} class={isCurrent ? "current" : ""} data-line={line}>
      <Amount cost={cost?.own} all={all} />
      <Amount cost={cost?.total} all={all} />
      <th scope="row">{line}</th>
      <td class="code">
        {open ? tokensOf(text, open).map(partOf) : text}
        {functions?.map((of) => (
          <FunctionTag key={of.function} of={of} all={all} />
        ))}
        {cost?.isWhole && (
          <span class="tag" title="Which lines of the function cost how much was not recorded">
            whole function
          </span>
        )}
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

/** The heat is the share of everything, not of the file: a file that costs little stays cool. */
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

function FunctionTag({ of, all }: { of: FunctionCost; all: number }) {
  const found = useFound();
  const name = functionName(names(), of.function);
  const costs = `own ${costText(measure.value, of.own)}, total ${costText(measure.value, of.total)}`;
  return (
    <button
      type="button"
      class={`tag function-tag ${found?.[of.function] === 1 ? "found" : ""}`}
      aria-pressed={selected.value === of.function}
      title={`${name}: ${costs}. Click: select it in all views.`}
      onClick={() => select(of.function)}
    >
      <Chip of={of.function} />
      <bdi>{name}</bdi> {all > 0 && shareText(of.total / all)}
    </button>
  );
}
