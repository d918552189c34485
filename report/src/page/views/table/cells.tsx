// The cells of the tables of functions.

import { type FunctionIndex, KINDS, ORIGINS } from "../../../shared/format";
import { functionName, placeOf } from "../../../shared/names";
import { costText, countText, shareText } from "../../../shared/units";
import { functionColours, isDark } from "../../colours";
import { measure, names } from "../../state";

/** Shows a cost with its share of `all`, as a number and as a bar. */
export function Cost({ cost, all }: { cost: number; all: number }) {
  const share = all > 0 ? cost / all : 0;
  return (
    <span class="cost-cell">
      <span class="fill" style={{ width: `${Math.max(0, Math.min(1, share)) * 100}%` }} />
      <span class="amount">{costText(measure.value, cost)}</span>
      <span class="share">{all > 0 ? shareText(share) : ""}</span>
    </span>
  );
}

/** Returns the number of calls; `10/2` if two of the ten calls were in no other call of the function, as in cProfile. */
export function callsText(calls: number, primitiveCalls: number): string {
  return calls === primitiveCalls ? countText(calls) : `${countText(calls)}/${countText(primitiveCalls)}`;
}

/** Shows the colour of a function in all views. */
export function Chip({ of }: { of: FunctionIndex }) {
  const { kind, origin } = names().functions;
  return (
    <span
      class="chip"
      title={`${KINDS[kind[of]!]}, ${ORIGINS[origin[of]!]}`}
      style={{ background: functionColours(names(), isDark())[of] ?? "" }}
    />
  );
}

export function FunctionName({ of }: { of: FunctionIndex }) {
  const name = functionName(names(), of);
  return (
    <span class="function-name" title={name}>
      <Chip of={of} />
      <bdi>{name}</bdi>
    </span>
  );
}

/** Shows the location of a function, shortened in the middle: the file stays visible. */
export function Place({ of }: { of: FunctionIndex }) {
  return <PathText path={placeOf(names(), of)} />;
}

export function PathText({ path }: { path: string }) {
  const cut = Math.max(0, path.lastIndexOf("/"));
  return (
    <span class="path-text" title={path}>
      <span class="start">{path.slice(0, cut)}</span>
      <span class="end">{path.slice(cut)}</span>
    </span>
  );
}
