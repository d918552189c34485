// The figures of a memory; each selects a view of it.

import type { Amount, DeviceMemory } from "../../../shared/format";
import { neverFreed } from "../../../shared/memory";
import { bytesText, countText, shareText, timeText } from "../../../shared/units";
import { chooseMeasure, chooseMoment, type MemoryMeasure, part, peakMoment } from "./state";

export function MemoryCards({ of, totals }: { of: DeviceMemory; totals: Float64Array | undefined }) {
  const now = part();
  const isChosen = (measure: MemoryMeasure) => now.kind === "measure" && now.measure === measure;
  const share = (amount: Amount, all: Amount) => (all.bytes > 0 ? shareText(amount.bytes / all.bytes) : "");
  const card = (measure: MemoryMeasure, label: string, amount: Amount, about: string) => (
    <Card
      title={TITLES[measure]}
      label={label}
      amount={amount}
      about={about}
      isChosen={isChosen(measure)}
      choose={() => chooseMeasure(measure)}
    />
  );
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset can't be laid out as a row of cards.
    <div class="memory-cards" role="group" aria-label="Figures of memory">
      {card("peak", "At the peak", of.peak, of.peakNs === null ? "" : `at ${timeText(of.peakNs)}`)}
      {card("live", "Not freed", neverFreed(of), aboutLive(of, share(neverFreed(of), of.peak)))}
      {card("bytes", "Allocated", of.allocated, "in total")}
      {card("temporary", "Temporary", of.temporary, `${share(of.temporary, of.allocated)} of all`)}
      {of.moments && <MomentCard of={of} totals={totals} />}
    </div>
  );
}

function aboutLive({ fromBefore }: DeviceMemory, share: string): string {
  if (fromBefore.blocks === 0) return `${share} of the peak`;
  return `and ${bytesText(fromBefore.bytes)} from before the recording`;
}

const TITLES: Record<MemoryMeasure, string> = {
  peak: "Live memory at the moment of the peak",
  live: "Live memory at the end of the recording: leaks, and memory that the program keeps",
  bytes: "All blocks that were allocated",
  temporary: "Blocks that were freed before their thread allocated another one",
};

interface CardProperties {
  label: string;
  title: string;
  amount: Amount;
  about: string;
  isChosen: boolean;
  choose(): void;
}

function Card({ label, title, amount, about, isChosen, choose }: CardProperties) {
  const blocks = `${countText(amount.blocks)} ${amount.blocks === 1 ? "block" : "blocks"}`;
  return (
    <button type="button" class="memory-card" title={title} aria-pressed={isChosen} onClick={choose}>
      <span class="label">{label}</span>
      <strong>{bytesText(amount.bytes)}</strong>
      <span class="about">{[blocks, about].filter((text) => text.trim() !== "").join(", ")}</span>
    </button>
  );
}

/** Explains the curve, and shows the selected moments. */
function MomentCard({ of, totals }: { of: DeviceMemory; totals: Float64Array | undefined }) {
  const now = part();
  const times = of.moments!.times;
  const bytes = (at: number) => totals?.[at] ?? 0;
  if (now.kind === "growth") {
    const grown = bytes(now.to) - bytes(now.from);
    return (
      <button type="button" class="memory-card" aria-pressed="true" onClick={() => chooseMoment(now.to)}>
        <span class="label">Growth</span>
        <strong class={grown > 0 ? "more" : "less"}>
          {grown > 0 ? "+" : ""}
          {bytesText(grown)}
        </strong>
        <span class="about">
          {timeText(times[now.from]!)} to {timeText(times[now.to]!)}
        </span>
      </button>
    );
  }
  const isMoment = now.kind === "moment";
  return (
    <button
      type="button"
      class="memory-card"
      aria-pressed={isMoment}
      onClick={() => chooseMoment(isMoment ? now.at : peakMoment(of))}
    >
      <span class="label">At a moment</span>
      <strong>{isMoment ? bytesText(bytes(now.at)) : "–"}</strong>
      <span class="about">
        {isMoment ? `at ${timeText(times[now.at]!)}; Shift+click compares` : "click on the curve"}
      </span>
    </button>
  );
}
