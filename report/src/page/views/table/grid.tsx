// A table that can be sorted and navigated by keys, and draws only the visible rows.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { bringRowIntoView, useVisibleRows } from "../../visible-rows";

const ROW = 24;
const HEADER = 28;
/** Elements of rows that scroll out are reused for those that scroll in; this is the maximum of both at once. */
const DRAWN = 256;

export interface GridColumn {
  name: string;
  label: string;
  title: string;
  isText?: boolean;
  cell(row: number): ComponentChildren;
}

export interface SortOrder {
  column: string;
  isRising: boolean;
}

/** Returns the order after a click on a header: numbers descend first, texts ascend. */
export function orderedBy(order: SortOrder, column: GridColumn): SortOrder {
  if (order.column === column.name) return { ...order, isRising: !order.isRising };
  return { column: column.name, isRising: column.isText === true };
}

interface Properties {
  label: string;
  columns: GridColumn[];
  /** The rows for `cell`, from top to bottom. */
  rows: Uint32Array;
  order: SortOrder;
  sort(column: GridColumn): void;
  /** The selected row. */
  selected: number | null;
  classOf?(row: number): string;
  choose(row: number): void;
  open(row: number): void;
}

export function Grid(properties: Properties) {
  const { label, columns, rows, order, sort, selected, choose, open } = properties;
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const selectedAt = selected === null ? -1 : rows.indexOf(selected);
  const [at, setAt] = useState(Math.max(0, selectedAt));
  const place = Math.min(at, rows.length - 1);
  const { from, to } = useVisibleRows(scroller, rows.length, ROW);

  const goTo = (next: number) => {
    const inside = Math.max(0, Math.min(rows.length - 1, next));
    setAt(inside);
    bringRowIntoView(scroller.current!, inside, ROW, HEADER);
  };
  useEffect(() => {
    if (selectedAt >= 0) goTo(selectedAt);
  }, [selectedAt]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return;
    const page = Math.max(1, Math.floor((scroller.current!.clientHeight - HEADER) / ROW) - 1);
    const steps: Record<string, number> = {
      ArrowUp: -1,
      ArrowDown: 1,
      PageUp: -page,
      PageDown: page,
      Home: -rows.length,
      End: rows.length,
    };
    const step = steps[event.key];
    if (step !== undefined) goTo(place + step);
    else if (event.key === "Enter" && place >= 0) (place === selectedAt ? open : choose)(rows[place]!);
    else return;
    event.preventDefault();
  };

  return (
    <div class="grid" ref={scroller}>
      <table
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: rows are navigated and selected by keys.
        role="grid"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        aria-activedescendant={place >= from && place < to ? `${id}-${place}` : undefined}
        tabIndex={0}
        onKeyDown={onKeyDown}
      >
        <Header columns={columns} order={order} sort={sort} />
        <tbody>
          <Gap rows={from} columns={columns.length} />
          {Array.from(rows.subarray(from, to), (row, index) => (
            <tr
              key={(from + index) % DRAWN}
              id={`${id}-${from + index}`}
              aria-rowindex={from + index + 2}
              aria-selected={row === selected}
              class={`${from + index === place ? "cursor " : ""}${properties.classOf?.(row) ?? ""}`}
              onClick={() => {
                setAt(from + index);
                choose(row);
              }}
              onDblClick={() => open(row)}
            >
              {columns.map((column) => (
                <td key={column.name} class={column.name}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
          <Gap rows={rows.length - to} columns={columns.length} />
        </tbody>
      </table>
    </div>
  );
}

function Header({ columns, order, sort }: Pick<Properties, "columns" | "order" | "sort">) {
  const sorted = (name: string) => (order.column !== name ? "none" : order.isRising ? "ascending" : "descending");
  return (
    <thead>
      <tr aria-rowindex={1}>
        {columns.map((column) => (
          <th key={column.name} scope="col" class={column.name} aria-sort={sorted(column.name)}>
            <button type="button" title={column.title} onClick={() => sort(column)}>
              {column.label}
              <span class="arrow" aria-hidden="true">
                {order.column !== column.name ? "" : order.isRising ? "▲" : "▼"}
              </span>
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** Has the height of the rows that are not drawn. */
function Gap({ rows, columns }: { rows: number; columns: number }) {
  if (rows <= 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it can be focused.
    <tr class="gap" aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * ROW}px` }} />
    </tr>
  );
}
