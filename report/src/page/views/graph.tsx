// Call graph.

export function GraphView() {
  return <p>Call graph</p>;
}
