// Self cost of memory by function or by line.

import type { MemoryQuestion } from "../../../engine/memory/methods";
import { bytesText, countText } from "../../../shared/units";
import { query } from "../../engine";
import { Problem } from "../../problem";
import { useFound } from "../../search-results";
import { names, select, selected } from "../../state";
import { useAnswer } from "../../use-answer";
import { FunctionName, PathText } from "../table/cells";
import { Blocks, Bytes, Growth, linePlace } from "./cells";

const MOST_ROWS = 300;

interface Properties {
  question: MemoryQuestion;
  by: "functions" | "lines";
  label: string;
}

export function MemoryFlat({ question, by, label }: Properties) {
  const { value, error } = useAnswer(JSON.stringify([question, by]), async () => ({
    by,
    isGrowth: question.part.kind === "growth",
    ...(await query("memoryFlat", question, by)),
  }));
  const found = useFound();
  if (error) return <Problem what="The table can't be made" why={error} />;
  if (!value) return <p role="status">Counting…</p>;
  const { item, self, total, blocks } = value.flatColumns;
  if (item.length === 0) return <p class="nothing">The selection allocated no memory.</p>;
  const { frames } = names();
  const functionOf = (row: number) => (value.by === "lines" ? frames.function[item[row]!]! : item[row]!);
  const rows = Array.from({ length: Math.min(MOST_ROWS, item.length) }, (_, row) => row);
  return (
    <>
      <table class="memory-table" aria-label={label}>
        <thead>
          <tr>
            <th scope="col">{value.by === "lines" ? "Line" : "Function"}</th>
            <th scope="col">{value.isGrowth ? "Self growth" : "Self bytes"}</th>
            <th scope="col" class="wide">
              Total
            </th>
            <th scope="col">Blocks</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={item[row]}
              aria-selected={selected.value === functionOf(row)}
              class={found?.[functionOf(row)] === 1 ? "found" : ""}
            >
              <td class="name">
                <button type="button" class="row-name" onClick={() => select(functionOf(row))}>
                  <FunctionName of={functionOf(row)} />
                  <PathText path={linePlace(functionOf(row), value.by === "lines" ? frames.line[item[row]!]! : 0)} />
                </button>
              </td>
              <td>{value.isGrowth ? <Growth bytes={self[row]!} /> : <Bytes bytes={self[row]!} all={value.total} />}</td>
              <td class="wide">{bytesText(total[row]!)}</td>
              <td>
                <Blocks blocks={blocks[row]!} isSigned={value.isGrowth} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {item.length > MOST_ROWS && (
        <p class="nothing">{countText(item.length - MOST_ROWS)} more took less: search, or look at call paths.</p>
      )}
    </>
  );
}
