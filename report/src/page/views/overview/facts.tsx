// When and where it was recorded, how long it took, and how much memory.

import type { ComponentChildren } from "preact";
import type { DeviceMemory, MeasureName } from "../../../shared/format";
import { bytesText, countText, dateText, MEASURE_LABELS, timeText } from "../../../shared/units";
import { addressWith } from "../../address";
import { head, measures } from "../../state";

export function Facts({ functions }: { functions: number | undefined }) {
  const { title, wallNs, durationNs, events, processes, threads, before } = head();
  const labels = [...new Set(processes.map((process) => process.labels).filter(Boolean))];
  const command = processes.length === 1 ? processes[0]?.title : undefined;
  return (
    <section class="facts" aria-label="The recording">
      <h2 title={title}>{title}</h2>
      {command !== undefined && command !== title && <p class="command">{command}</p>}
      <p class="dim">
        {[dateText(wallNs), ...labels].filter(Boolean).join(" · ")}
        {before && (
          <>
            {" · compared with "}
            <a href={addressWith({ view: "diff" })}>{before.title}</a>
          </>
        )}
      </p>
      <dl>
        <Fact name="Duration">{timeText(durationNs)}</Fact>
        {before && <Fact name="Before">{timeText(before.durationNs)}</Fact>}
        <Fact name="Events">{countText(events)}</Fact>
        {functions !== undefined && <Fact name="Functions shown">{countText(functions)}</Fact>}
        {processes.length > 1 && <Fact name="Processes">{countText(processes.length)}</Fact>}
        <Fact name="Threads">{countText(threads.length)}</Fact>
      </dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const AMOUNTS: { name: "peak" | "live" | "allocated" | "temporary"; measure: MeasureName; label: string }[] = [
  { name: "peak", measure: "peak", label: "At the peak" },
  { name: "live", measure: "live", label: "Never freed" },
  { name: "allocated", measure: "bytes", label: "Allocated" },
  { name: "temporary", measure: "temporary", label: "Temporary" },
];

export function MemoryFacts() {
  const memory = head().memory;
  if (memory === null) return null;
  return (
    <>
      {memory.devices.map((device) => (
        <DeviceFacts key={device.device} device={device} isOnly={memory.devices.length === 1} />
      ))}
      {memory.sampleEvery !== null && (
        <p class="dim">
          Not all allocations were recorded: one in about {bytesText(memory.sampleEvery)}. Amounts are estimated.
        </p>
      )}
    </>
  );
}

function DeviceFacts({ device, isOnly }: { device: DeviceMemory; isOnly: boolean }) {
  return (
    <section class="memory-facts">
      <h2>{isOnly ? "Memory" : `Memory: ${device.label}`}</h2>
      <div class="cards">
        {AMOUNTS.map(({ name, measure, label }) => (
          <a
            key={name}
            class={`number-card ${name}`}
            title={measures.value.includes(measure) ? MEASURE_LABELS[measure] : label}
            href={addressWith({ view: "memory", measure, device: String(device.device) })}
          >
            <span class="dim">{label}</span>
            <strong>{bytesText(device[name].bytes)}</strong>
            <span class="dim">
              {countText(device[name].blocks)} blocks
              {name === "peak" && device.peakNs !== null && `, after ${timeText(device.peakNs)}`}
            </span>
          </a>
        ))}
      </div>
    </section>
  );
}
