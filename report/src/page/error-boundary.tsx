// Isolates the failure of a view from the rest of the page.

import { Component, type ComponentChildren } from "preact";
import { Problem } from "./problem";

export class ErrorBoundary extends Component<{ children: ComponentChildren }, { why: string | null }> {
  override state = { why: null };

  override componentDidCatch(error: unknown): void {
    this.setState({ why: error instanceof Error ? error.message : String(error) });
  }

  override render() {
    return this.state.why === null ? (
      this.props.children
    ) : (
      <Problem what="This view can't be shown; the other views still work" why={this.state.why} />
    );
  }
}
