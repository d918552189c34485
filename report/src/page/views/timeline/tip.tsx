// The tooltip of the timeline.

import { functionName, placeOf } from "../../../shared/names";
import { countText, momentText, timeText } from "../../../shared/units";
import { query } from "../../engine";
import { head, names } from "../../state";
import { Tooltip } from "../../tooltip";
import { useAnswer } from "../../use-answer";
import { threadName } from "./frame";
import { type Hovered, hovered, type Picked } from "./state";
import { counterText, denseText, endText, isDense, nameOf } from "./track-text";

export function TimelineTip() {
  const at = hovered.value;
  if (!at) return null;
  return (
    <Tooltip x={at.x} y={at.y}>
      <What of={at.what} />
    </Tooltip>
  );
}

function What({ of }: { of: Hovered }) {
  if (of.kind === "span") return isDense(of.picked) ? <Dense of={of.picked} /> : <SpanTip of={of.picked} />;
  if (of.kind === "counter") {
    const { name } = head().timeline!.counters[of.counter]!;
    return (
      <>
        <strong>{name}</strong>: {counterText(name, of.value)}
      </>
    );
  }
  const known = names();
  return (
    <>
      <strong>{functionName(known, known.frames.function[of.frame]!)}</strong>
      <dl>
        <Row name="At" value={momentText(of.time, 1)} />
        {of.count > 1 && <Row name="With" value={`${countText(of.count - 1)} more in this place`} />}
      </dl>
    </>
  );
}

function Dense({ of }: { of: Picked }) {
  return (
    <>
      <strong>{denseText(names(), of)}</strong>
      <Facts of={of} />
      <div class="dim">Each is shorter than a pixel: zoom in to see them.</div>
    </>
  );
}

function SpanTip({ of }: { of: Picked }) {
  const { value } = useAnswer(`${of.block} ${of.row}`, () => query("timelineDetail", of.block, of.row));
  const known = names();
  const end = endText(of.flags);
  return (
    <>
      <strong>{nameOf(known, of.frame)}</strong>
      <div class="dim">{of.frame > 0 && placeOf(known, known.frames.function[of.frame - 1]!)}</div>
      <Facts of={of} />
      {end && <div class="failed">{end}</div>}
      <dl>
        {Object.entries(value ?? {})
          .filter(([name]) => name !== "failed")
          .map(([name, value]) => (
            <Row key={name} name={name} value={detailText(value)} />
          ))}
      </dl>
    </>
  );
}

function Facts({ of }: { of: Picked }) {
  const { thread } = head().timeline!.tracks[of.track]!;
  return (
    <dl>
      <Row name="Begins" value={momentText(of.begin, 1)} />
      <Row name="Takes" value={timeText(of.extent)} />
      <Row name="Depth" value={String(of.depth)} />
      <Row name="Thread" value={threadName(head(), thread)} />
    </dl>
  );
}

function detailText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function Row({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
