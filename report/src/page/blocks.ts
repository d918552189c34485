// The data of the report, which stands in the document as base64 in elements that no browser runs.

import type { Block } from "../shared/format";

export function blockText(block: Block | "head"): string {
  return document.getElementById(`sw-${block}`)?.textContent ?? "";
}
