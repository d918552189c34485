// Tags after the text of a line: the functions that begin in it, and the functions that it called.

import type { Called, LineCalls } from "../../../engine/call-lines";
import type { FunctionCost } from "../../../engine/source";
import type { FunctionIndex } from "../../../shared/format";
import { functionName } from "../../../shared/names";
import { costText, countText, shareText } from "../../../shared/units";
import { useFound } from "../../search-results";
import { measure, names, select, selected } from "../../state";
import { Chip } from "../table/cells";

/** Shows a function that begins in the line. */
export function FunctionTag({ of, all }: { of: FunctionCost; all: number }) {
  const costs = `self ${costText(measure.value, of.self)}, total ${costText(measure.value, of.total)}`;
  return <Tag of={of.function} kind="function-tag" share={all > 0 ? of.total / all : null} costs={costs} />;
}

/** Shows the functions that were called from the line, those with the highest cost first. */
export function CalledTags({ calls, all }: { calls: LineCalls; all: number }) {
  return (
    <>
      {calls.called.map((of) => (
        <Tag
          key={of.function}
          of={of.function}
          kind="function-tag called-tag"
          share={all > 0 ? of.total / all : null}
          costs={calledText(of)}
        />
      ))}
      {calls.others > 0 && (
        <span class="tag" title="Cheaper functions that are not listed">
          and {countText(calls.others)} more
        </span>
      )}
    </>
  );
}

function calledText({ calls, total }: Called): string {
  const time = costText(measure.value, total);
  if (calls === 0) return `called from here before the recording began, ${time}`;
  return `${countText(calls)} ${calls === 1 ? "call" : "calls"} from this line, ${time}`;
}

interface Properties {
  of: FunctionIndex;
  kind: string;
  share: number | null;
  costs: string;
}

function Tag({ of, kind, share, costs }: Properties) {
  const found = useFound();
  const name = functionName(names(), of);
  return (
    <button
      type="button"
      class={`tag ${kind} ${found?.[of] === 1 ? "found" : ""}`}
      aria-pressed={selected.value === of}
      title={`${name}: ${costs}. Click: select it in all views.`}
      onClick={() => select(of)}
    >
      <Chip of={of} />
      <bdi>{name}</bdi> {share !== null && shareText(share)}
    </button>
  );
}
