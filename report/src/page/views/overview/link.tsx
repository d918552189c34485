// A function in the overview.

import type { FunctionIndex } from "../../../shared/format";
import { placeOf, shortPath } from "../../../shared/names";
import { addressWith } from "../../address";
import { names, select, show } from "../../state";
import { FunctionName } from "../table/cells";

/** Shows the name and the location of a function; a click selects it, a double click shows its callers and callees. */
export function FunctionLink({ of }: { of: FunctionIndex }) {
  const place = placeOf(names(), of);
  return (
    <a
      class="function-link"
      href={addressWith({ function: String(of) })}
      title={`${place}\nClick: select. Double click: callers and callees.`}
      onClick={(event) => {
        event.preventDefault();
        select(of);
      }}
      onDblClick={() => show("table", of)}
    >
      <FunctionName of={of} /> <span class="dim">{shortPath(place, 32)}</span>
    </a>
  );
}
