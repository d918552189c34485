// The time and the machine of the recording, its duration, and its memory.

import type { ComponentChildren } from "preact";
import type { Amount, DeviceMemory, MeasureName } from "../../../shared/format";
import { fragmentation, neverFreed } from "../../../shared/memory";
import { bytesText, countText, dateText, exactShareText, MEASURE_LABELS, timeText } from "../../../shared/units";
import { addressWith } from "../../address";
import { head, measures } from "../../state";

export function Facts({ functions }: { functions: number | undefined }) {
  const { title, wallNs, durationNs, events, processes, threads, before } = head();
  // Machine and Python of the processes, without repetitions.
  const labels = [...new Set(processes.flatMap((process) => process.labels.split(", ")).filter(Boolean))];
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

type AmountName = "peak" | "live" | "allocated" | "temporary";

function amountOf(device: DeviceMemory, name: AmountName): Amount {
  return name === "live" ? neverFreed(device) : device[name];
}

const AMOUNTS: { name: AmountName; measure: MeasureName; label: string }[] = [
  { name: "peak", measure: "peak", label: "At the peak" },
  { name: "live", measure: "live", label: "Not freed" },
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
          Amounts are estimates: one allocation for each {bytesText(memory.sampleEvery)} was recorded, on average.
        </p>
      )}
    </>
  );
}

/** Returns a link to the memory of a device. */
function placeOf({ device }: DeviceMemory): Record<string, string> {
  return { view: "memory", device: String(device), "memory.pool": "", "memory.failure": "" };
}

function DeviceFacts({ device, isOnly }: { device: DeviceMemory; isOnly: boolean }) {
  return (
    <section class="memory-facts">
      <h2>{isOnly && device.host === null ? "Memory" : `Memory: ${device.label}`}</h2>
      <div class="cards">
        {AMOUNTS.map(({ name, measure, label }) => (
          <a
            key={name}
            class={`number-card ${name}`}
            title={measures.value.includes(measure) ? MEASURE_LABELS[measure] : label}
            href={addressWith({
              measure,
              ...placeOf(device),
              "memory.part": measure,
            })}
          >
            <span class="dim">{label}</span>
            <strong>{bytesText(amountOf(device, name).bytes)}</strong>
            <span class="dim">
              {countText(amountOf(device, name).blocks)} blocks
              {name === "peak" && device.peakNs !== null && `, after ${timeText(device.peakNs)}`}
            </span>
          </a>
        ))}
        <HostFacts device={device} />
      </div>
    </section>
  );
}

/** Shows the figures of the host's allocator. */
function HostFacts({ device }: { device: DeviceMemory }) {
  const { host } = device;
  if (!host) return null;
  const { reservedPeak, total, states, failureCount } = host;
  const free = states.reduce((sum, state) => sum + state.free, 0);
  const scattered = fragmentation(states);
  const there = placeOf(device);
  return (
    <>
      {reservedPeak.reserved > 0 && (
        <a class="number-card reserved" href={addressWith(there)}>
          <span class="dim">Reserved at most</span>
          <strong>{bytesText(reservedPeak.reserved)}</strong>
          <span class="dim">
            {total ? `of ${bytesText(total)}, ` : ""}after {timeText(reservedPeak.timeNs)}
          </span>
        </a>
      )}
      {scattered !== null && (
        <a class="number-card fragmentation" href={addressWith(there)}>
          <span class="dim">Fragmentation</span>
          <strong>{exactShareText(scattered)}</strong>
          <span class="dim">{bytesText(free)} free in segments</span>
        </a>
      )}
      {failureCount > 0 && (
        <a class="number-card failures" href={addressWith({ ...there, "memory.failure": "0" })}>
          <span class="dim">Out of memory</span>
          <strong>{countText(failureCount)}</strong>
          <span class="dim">{failureCount === 1 ? "request" : "requests"} that could not be met</span>
        </a>
      )}
    </>
  );
}
