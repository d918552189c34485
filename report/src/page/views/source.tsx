// Source.

export function SourceView() {
  return <p>Source</p>;
}
