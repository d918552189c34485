// search.

import type { Context } from "./methods";

export function searchMethods(_context: Context) {
  return {};
}
