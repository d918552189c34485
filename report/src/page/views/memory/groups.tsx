// Memory by thread, tag, allocator and size.

import type { DeviceMemory, NamedAmounts } from "../../../shared/format";
import { bytesText, countText, shareText } from "../../../shared/units";
import { part } from "./state";

type Which = "peak" | "live" | "allocated" | "temporary";

const WORDS: Record<Which, string> = {
  peak: "at the peak",
  live: "not freed",
  allocated: "of allocated memory",
  temporary: "of temporary memory",
};
const MOST_ROWS = 12;

/** Returns the texts of the groups. Memory from before the recording is live, but no leak candidate. */
function wordsOf({ fromBefore }: DeviceMemory, which: Which): string {
  return which === "live" && fromBefore.blocks > 0 ? "live at the end" : WORDS[which];
}

export function MemoryGroups({ of }: { of: DeviceMemory }) {
  const now = part();
  const which: Which = now.kind !== "measure" ? "peak" : now.measure === "bytes" ? "allocated" : now.measure;
  const words = wordsOf(of, which);
  return (
    <div class="memory-groups">
      <Group label="By thread" rows={of.threads} which={which} words={words} unnamed="thread" />
      <Group label="By tag" rows={of.tags} which={which} words={words} unnamed="no tag" />
      <Group label="By allocator" rows={of.allocators} which={which} words={words} unnamed="unknown" />
      <Sizes rows={of.sizes} which={which} words={words} />
    </div>
  );
}

interface GroupProperties {
  label: string;
  rows: NamedAmounts[];
  which: Which;
  words: string;
  /** The text for a missing name. */
  unnamed: string;
}

function Group({ label, rows, which, words, unnamed }: GroupProperties) {
  const there = rows.filter((row) => row[which].blocks > 0).sort((a, b) => b[which].bytes - a[which].bytes);
  if (there.length === 0) return null;
  const all = there.reduce((sum, row) => sum + row[which].bytes, 0);
  const rest = there.slice(MOST_ROWS);
  return (
    <section>
      <h3>
        {label} <span class="about">{words}</span>
      </h3>
      <table class="memory-table small">
        <thead>
          <tr>
            <th scope="col">{label.slice(3, 4).toUpperCase() + label.slice(4)}</th>
            <th scope="col">Bytes</th>
            <th scope="col">Blocks</th>
          </tr>
        </thead>
        <tbody>
          {there.slice(0, MOST_ROWS).map((row) => (
            <Bar
              key={`${row.name} ${row.number}`}
              name={row.name || unnamed}
              bytes={row[which].bytes}
              blocks={row[which].blocks}
              all={all}
            />
          ))}
          {rest.length > 0 && (
            <Bar
              name={`${countText(rest.length)} others`}
              bytes={rest.reduce((sum, row) => sum + row[which].bytes, 0)}
              blocks={rest.reduce((sum, row) => sum + row[which].blocks, 0)}
              all={all}
            />
          )}
        </tbody>
      </table>
    </section>
  );
}

function Bar({ name, bytes, blocks, all }: { name: string; bytes: number; blocks: number; all: number }) {
  const share = all > 0 ? bytes / all : 0;
  return (
    <tr>
      <th scope="row" title={name}>
        {name}
      </th>
      <td>
        <span class="cost-cell">
          <span class="fill" style={{ width: `${share * 100}%` }} />
          <span class="amount">{bytesText(bytes)}</span>
          <span class="share">{shareText(share)}</span>
        </span>
      </td>
      <td>{countText(blocks)}</td>
    </tr>
  );
}

/** Blocks by size: a bar for each size class. */
function Sizes({ rows, which, words }: { rows: NamedAmounts[]; which: Which; words: string }) {
  const there = rows.map((row) => row[which].blocks > 0);
  if (!there.includes(true)) return null;
  const sorted = [...rows].sort((a, b) => a.number - b.number);
  const [first, last] = [
    sorted.findIndex((row) => row[which].blocks > 0),
    sorted.length - [...sorted].reverse().findIndex((row) => row[which].blocks > 0),
  ];
  const shown = sorted.slice(first, last);
  const most = Math.max(...shown.map((row) => row[which].bytes), 1);
  return (
    <section>
      <h3>
        By size of a block <span class="about">{words}</span>
      </h3>
      <table class="memory-sizes">
        <thead>
          <tr>
            <th scope="col">Up to</th>
            <th scope="col">Bytes</th>
            <th scope="col">Blocks</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={row.number}>
              <th scope="row">{sizeText(row)}</th>
              <td class="column">
                <span class="fill" style={{ width: `${(row[which].bytes / most) * 100}%` }} />
                <span class="amount">{bytesText(row[which].bytes)}</span>
              </td>
              <td>{countText(row[which].blocks)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function sizeText(row: NamedAmounts): string {
  return /^\d+$/.test(row.name) ? bytesText(Number(row.name)) : row.name;
}
