// Memory by call path: rows that open.

import { useEffect, useRef, useState } from "preact/hooks";
import type { MemoryQuestion } from "../../../engine/memory/methods";
import type { MemoryOrder, PathRow, PathRows } from "../../../engine/memory/rows";
import { bytesText, countText } from "../../../shared/units";
import { addressed } from "../../address";
import { query } from "../../engine";
import { Problem } from "../../problem";
import { useFound } from "../../search-results";
import { select, selected } from "../../state";
import { useAnswer } from "../../use-answer";
import { FunctionName, Place } from "../table/cells";
import { Blocks, Bytes, Growth } from "./cells";

const orderText = addressed("memory.order", "bytes");

function order(): MemoryOrder {
  return orderText.value === "blocks" ? "blocks" : "bytes";
}

export function MemoryPaths({ question, label }: { question: MemoryQuestion; label: string }) {
  const key = JSON.stringify(question);
  const [opened, setOpened] = useState<{ key: string; nodes: number[] } | null>(null);
  const open = opened?.key === key ? opened.nodes : null;
  const request = JSON.stringify([key, open, order()]);
  const { value, error } = useAnswer(request, async () => ({
    key,
    rows: await query("memoryRows", question, open, order()),
  }));
  if (error) return <Problem what="Call paths can't be shown" why={error} />;
  if (!value) return <p role="status">Counting…</p>;
  if (value.rows.rows.length === 0) {
    return (
      <p class="nothing">The selection allocated no memory. Choose other threads, or show more kinds of functions.</p>
    );
  }
  const toggle = (row: PathRow) => {
    if (row.children === 0 || row.item < 0) return;
    const before = value.rows.open;
    const nodes = row.isOpen ? before.filter((node) => node !== row.node) : [...before, row.node];
    setOpened({ key: value.key, nodes });
  };
  const isGrowth = question.part.kind === "growth";
  return <PathTable label={label} paths={value.rows} isGrowth={isGrowth} toggle={toggle} />;
}

interface TableProperties {
  label: string;
  paths: PathRows;
  isGrowth: boolean;
  toggle(row: PathRow): void;
}

function PathTable({ label, paths, isGrowth, toggle }: TableProperties) {
  const table = useRef<HTMLTableElement>(null);
  const [at, setAt] = useState(0);
  const hasKeys = useRef(false);
  const { rows } = paths;
  const place = Math.min(at, rows.length - 1);
  useEffect(() => {
    if (!hasKeys.current) return;
    hasKeys.current = false;
    table.current?.querySelector<HTMLElement>(`[data-at="${place}"]`)?.focus();
  }, [place, rows]);
  const goTo = (next: number) => {
    hasKeys.current = true;
    setAt(Math.min(rows.length - 1, Math.max(0, next)));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.target as Element).hasAttribute("data-at")) return;
    const row = rows[place]!;
    if (event.key === "ArrowDown") goTo(place + 1);
    else if (event.key === "ArrowUp") goTo(place - 1);
    else if (event.key === "Home") goTo(0);
    else if (event.key === "End") goTo(rows.length - 1);
    else if (event.key === "ArrowRight" && !row.isOpen) toggle(row);
    else if (event.key === "ArrowRight") goTo(place + 1);
    else if (event.key === "ArrowLeft" && row.isOpen) toggle(row);
    else if (event.key === "ArrowLeft") goTo(aboveOf(rows, place));
    else if (event.key === "Enter" && row.item >= 0) select(row.item);
    else return;
    event.preventDefault();
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: the rows form a tree grid.
    <table class="memory-table" role="treegrid" aria-label={label} ref={table} onKeyDown={onKeyDown}>
      <thead>
        <tr>
          <th scope="col">Call path</th>
          <OrderHeader of="bytes" label={isGrowth ? "Growth" : "Bytes"} />
          <th scope="col" class="wide">
            {isGrowth ? "Added" : "Self"}
          </th>
          {isGrowth && (
            <th scope="col" class="wide">
              Freed
            </th>
          )}
          <OrderHeader of="blocks" label="Blocks" />
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <Row
            key={row.node}
            row={row}
            index={index}
            isEntry={index === place}
            all={paths.total}
            isGrowth={isGrowth}
            toggle={toggle}
            onFocus={() => setAt(index)}
          />
        ))}
      </tbody>
    </table>
  );
}

/** Returns the row of the caller. */
function aboveOf(rows: PathRow[], place: number): number {
  let above = place;
  while (above > 0 && rows[above]!.depth >= rows[place]!.depth) above--;
  return above;
}

function OrderHeader({ of, label }: { of: MemoryOrder; label: string }) {
  return (
    <th scope="col" aria-sort={order() === of ? "descending" : "none"}>
      <button
        type="button"
        title={`Most ${of} first`}
        onClick={() => {
          orderText.value = of;
        }}
      >
        {label}
        {order() === of && <span aria-hidden="true"> ▼</span>}
      </button>
    </th>
  );
}

interface RowProperties {
  row: PathRow;
  index: number;
  isEntry: boolean;
  all: number;
  isGrowth: boolean;
  toggle(row: PathRow): void;
  onFocus(): void;
}

/** The maximum number of indentation steps; deeper rows show their depth as a number. */
const MOST_STEPS = 16;

function Row({ row, index, isEntry, all, isGrowth, toggle, onFocus }: RowProperties) {
  const found = useFound();
  const isRest = row.item < 0;
  const canOpen = row.children > 0 && !isRest;
  const expanded = canOpen ? { "aria-expanded": row.isOpen } : {};
  return (
    <tr
      data-at={index}
      tabIndex={isEntry ? 0 : -1}
      aria-level={row.depth + 1}
      aria-selected={!isRest && selected.value === row.item}
      class={found && !isRest && found[row.item] === 1 ? "found" : ""}
      {...expanded}
      onFocus={onFocus}
      onClick={() => !isRest && select(row.item)}
      onDblClick={() => toggle(row)}
    >
      <td class="name">
        <span class="indented" style={{ paddingLeft: `${Math.min(row.depth, MOST_STEPS) * 14}px` }}>
          <button
            type="button"
            class="twist"
            tabIndex={-1}
            disabled={!canOpen}
            aria-label={row.isOpen ? "Close" : "Open"}
            onClick={(event) => {
              event.stopPropagation();
              toggle(row);
            }}
          >
            {canOpen ? (row.isOpen ? "▾" : "▸") : ""}
          </button>
          {row.depth > MOST_STEPS && <span class="depth">{row.depth}</span>}
          {isRest ? (
            <span class="rest-of">{countText(row.children)} smaller ones</span>
          ) : (
            <>
              <FunctionName of={row.item} />
              <Place of={row.item} />
            </>
          )}
        </span>
      </td>
      <td>{isGrowth ? <Growth bytes={row.total} /> : <Bytes bytes={row.total} all={all} />}</td>
      <td class="wide">{bytesText(isGrowth ? row.added : row.self)}</td>
      {isGrowth && <td class="wide">{bytesText(row.freed)}</td>}
      <td>
        <Blocks blocks={row.blocks} isSigned={isGrowth} />
      </td>
    </tr>
  );
}
