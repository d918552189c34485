// memory.

import type { Context } from "./methods";

export function memoryMethods(_context: Context) {
  return {};
}
