// Changes.

export function DiffView() {
  return <p>Changes</p>;
}
