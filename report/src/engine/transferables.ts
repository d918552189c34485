// What of an answer can be handed over rather than copied.

/** Buffers of the columns at the top of an answer whose name ends in `Columns`: the engine keeps nothing of these. */
export function transferables(value: unknown): Transferable[] {
  const found = new Set<ArrayBuffer>();
  for (const [key, columns] of Object.entries((value ?? {}) as object)) {
    if (!key.endsWith("Columns") || typeof columns !== "object" || columns === null) continue;
    for (const column of Object.values(columns)) {
      if (ArrayBuffer.isView(column) && column.buffer instanceof ArrayBuffer) found.add(column.buffer);
    }
  }
  return [...found];
}
