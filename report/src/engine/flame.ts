// flame.

import type { Context } from "./methods";

export function flameMethods(_context: Context) {
  return {};
}
