// The table as text with tabs, for a spreadsheet.

import { useEffect, useRef, useState } from "preact/hooks";
import { KINDS, ORIGINS } from "../../../shared/format";
import { functionName, moduleOf, placeOf } from "../../../shared/names";
import { countText } from "../../../shared/units";
import { measure, names } from "../../state";
import type { Costs } from "./columns";

/** Returns the rows of the page, with plain numbers: nanoseconds, bytes or counts. */
export function tableText(costs: Costs, rows: Uint32Array): string {
  const known = names();
  const unit = measure.value === "time" ? "ns" : ["samples", "allocations"].includes(measure.value) ? "count" : "bytes";
  const heads = ["function", "place", "module", "kind", "origin", "calls", "primitive calls"];
  const lines = [[...heads, `self (${unit})`, `total (${unit})`].join("\t")];
  for (const row of rows) {
    const of = costs.function[row]!;
    const texts = [functionName(known, of), placeOf(known, of), moduleOf(known, of) ?? ""];
    lines.push(
      [
        ...texts.map((text) => text.replace(/[\t\r\n]+/g, " ")),
        KINDS[known.functions.kind[of]!],
        ORIGINS[known.functions.origin[of]!],
        costs.calls[row],
        costs.primitiveCalls[row],
        costs.self[row],
        costs.total[row],
      ].join("\t"),
    );
  }
  return `${lines.join("\n")}\n`;
}

export function CopyButton({ text }: { text(): string }) {
  const [message, setMessage] = useState("");
  const [shown, setShown] = useState<string | null>(null);
  const copy = async () => {
    const copied = text();
    try {
      await navigator.clipboard.writeText(copied);
      setMessage("Copied");
    } catch {
      setShown(copied);
    }
  };
  useEffect(() => {
    if (message === "") return;
    const timer = setTimeout(() => setMessage(""), 2000);
    return () => clearTimeout(timer);
  }, [message]);
  return (
    <>
      <button type="button" title="Copy the visible rows as text with tabs" onClick={() => void copy()}>
        Copy as TSV
      </button>
      <output aria-live="polite">{message}</output>
      {shown !== null && <CopyFrom text={shown} close={() => setShown(null)} />}
    </>
  );
}

/** The maximum number of lines; a field with more takes seconds to appear. */
const MOST_LINES = 5000;

/** Shows a field to copy from, for browsers that allow no page to write to the clipboard. */
function CopyFrom({ text, close }: { text: string; close(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const lines = text.split("\n");
  const isCut = lines.length > MOST_LINES;
  useEffect(() => {
    dialog.current!.showModal();
    area.current!.select();
  }, []);
  return (
    <dialog ref={dialog} class="copy-from" aria-label="Rows to copy" onClose={close}>
      <p>
        This browser does not let the page copy. Press Ctrl+C
        {isCut && ` for the first ${countText(MOST_LINES - 1)} of ${countText(lines.length - 2)} rows`}:
      </p>
      <textarea
        ref={area}
        readOnly
        rows={16}
        aria-label="Rows as text with tabs"
        value={isCut ? lines.slice(0, MOST_LINES).join("\n") : text}
      />
      <button type="button" onClick={() => dialog.current!.close()}>
        Close
      </button>
    </dialog>
  );
}
