// Overview.

export function OverviewView() {
  return <p>Overview</p>;
}
