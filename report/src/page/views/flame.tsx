// Flame graph.

export function FlameView() {
  return <p>Flame graph</p>;
}
