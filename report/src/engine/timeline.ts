// timeline.

import type { Context } from "./methods";

export function timelineMethods(_context: Context) {
  return {};
}
