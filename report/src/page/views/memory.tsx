// Memory.

export function MemoryView() {
  return <p>Memory</p>;
}
