// graph.

import type { Context } from "./methods";

export function graphMethods(_context: Context) {
  return {};
}
