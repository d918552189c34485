// overview.

import type { Context } from "./methods";

export function overviewMethods(_context: Context) {
  return {};
}
