// Functions and what they cost.

import { functionName } from "../../shared/names";
import { costText } from "../../shared/units";
import { useAnswer } from "../answer";
import { ask } from "../engine";
import { Problem } from "../problem";
import { measure, names, select, selection } from "../state";

export function TableView() {
  const { value, error } = useAnswer(JSON.stringify(selection.value), () => ask("table", selection.value));
  if (error) return <Problem what="The table can't be made" why={error} />;
  if (!value) return <p role="status">Counting…</p>;
  const { function: functions, own, total, calls } = value.functionsColumns;
  const order = Array.from(functions.keys()).sort((a, b) => own[b]! - own[a]!);
  return (
    <table>
      <thead>
        <tr>
          <th>Function</th>
          <th>Calls</th>
          <th>Own</th>
          <th>Total</th>
        </tr>
      </thead>
      <tbody>
        {order.slice(0, 200).map((row) => (
          <tr key={row} onClick={() => select(functions[row]!)}>
            <td>{functionName(names(), functions[row]!)}</td>
            <td>{calls[row]}</td>
            <td>{costText(measure.value, own[row]!)}</td>
            <td>{costText(measure.value, total[row]!)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
