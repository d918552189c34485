// The cells of the tables of memory.

import { placeOf } from "../../../shared/names";
import { bytesText, countText, shareText, signedCostText } from "../../../shared/units";
import { names } from "../../state";

/** Bytes with their share of all, as a number and as a bar. */
export function Bytes({ bytes, all }: { bytes: number; all: number }) {
  const share = all > 0 ? bytes / all : 0;
  return (
    <span class="cost-cell">
      <span class="fill" style={{ width: `${Math.max(0, Math.min(1, share)) * 100}%` }} />
      <span class="amount">{bytesText(bytes)}</span>
      <span class="share">{all > 0 ? shareText(share) : ""}</span>
    </span>
  );
}

/** Shows a change in bytes. */
export function Growth({ bytes }: { bytes: number }) {
  return <span class={bytes > 0 ? "more" : bytes < 0 ? "less" : ""}>{signedCostText("peak", bytes)}</span>;
}

/** Shows a number of blocks; with a sign if it is a change. */
export function Blocks({ blocks, isSigned }: { blocks: number; isSigned: boolean }) {
  return (
    <>
      {isSigned && blocks > 0 ? "+" : ""}
      {countText(blocks)}
    </>
  );
}

/** Returns the location of a line in a function. */
export function linePlace(of: number, line: number): string {
  const place = placeOf(names(), of);
  return line > 0 ? place.replace(/(:\d+)?$/, `:${line}`) : place;
}
