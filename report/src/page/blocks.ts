// The data of the report: base64 in elements of the document that no browser runs.

import type { Block } from "../shared/format";

export function blockText(block: Block | "head"): string {
  return document.getElementById(`sw-${block}`)?.textContent ?? "";
}
