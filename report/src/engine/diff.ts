// diff.

import type { Context } from "./methods";

export function diffMethods(_context: Context) {
  return {};
}
