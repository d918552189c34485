// The tooltips of the call graph.

import type { CallGraph, GraphArrow, GraphBox } from "../../../engine/graph/methods";
import { functionName, placeOf } from "../../../shared/names";
import { costText, countedText, countText, shareText } from "../../../shared/units";
import { measure, names } from "../../state";

export function BoxTip({ graph, box }: { graph: CallGraph; box: GraphBox }) {
  return (
    <>
      <strong>{functionName(names(), box.of)}</strong>
      <div class="place">{placeOf(names(), box.of)}</div>
      <dl>
        <dt>Total</dt>
        <dd>
          {costText(measure.value, box.total)} ({share(graph, box.total)})
        </dd>
        <dt>Self</dt>
        <dd>
          {costText(measure.value, box.self)} ({share(graph, box.self)})
        </dd>
        <Counted calls={box.calls} />
      </dl>
    </>
  );
}

export function ArrowTip({ graph, arrow }: { graph: CallGraph; arrow: GraphArrow }) {
  const name = (place: number) => functionName(names(), graph.boxes[place]!.of);
  return (
    <>
      <strong>{name(arrow.from)}</strong> {arrow.from === arrow.to ? "calls itself" : "calls"}{" "}
      {arrow.from !== arrow.to && <strong>{name(arrow.to)}</strong>}
      <dl>
        <dt>Total</dt>
        <dd>
          {costText(measure.value, arrow.total)} ({share(graph, arrow.total)})
        </dd>
        <Counted calls={arrow.calls} />
      </dl>
    </>
  );
}

function Counted({ calls }: { calls: number }) {
  const word = countedText(measure.value);
  return (
    <>
      <dt>{word[0]!.toUpperCase() + word.slice(1)}</dt>
      <dd>{countText(calls)}</dd>
    </>
  );
}

function share(graph: CallGraph, cost: number): string {
  return shareText(graph.total === 0 ? 0 : cost / graph.total);
}
