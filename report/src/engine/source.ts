// source.

import type { Context } from "./methods";

export function sourceMethods(_context: Context) {
  return {};
}
