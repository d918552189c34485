// The parts of an answer that can be transferred instead of copied.

/** Buffers of the columns of an answer whose names end in `Columns`: the engine does not keep these. */
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
