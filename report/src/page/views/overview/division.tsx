// The time by origin of the code.

import type { Division } from "../../../engine/overview";
import { costText, shareText } from "../../../shared/units";
import { filter, measure, type Toggle, toggle } from "../../state";

const PARTS: { part: keyof Division; label: string; toggles?: Toggle; title: string }[] = [
  { part: "program", label: "Program", toggles: "python", title: "The program's own Python functions" },
  { part: "libraries", label: "Libraries", toggles: "libraries", title: "Python functions of libraries" },
  { part: "native", label: "Native", toggles: "native", title: "Native functions, of the program or of libraries" },
  { part: "interpreter", label: "Interpreter", toggles: "internals", title: "The interpreter itself" },
  { part: "labels", label: "Phases", title: "Phases recorded by the program" },
  { part: "unknown", label: "No function", title: "Costs without a known function" },
];

export function Divided({ division }: { division: Division }) {
  const parts = PARTS.filter(({ part }) => division[part] > 0);
  const all = parts.reduce((sum, { part }) => sum + division[part], 0);
  if (parts.length < 2) return null;
  return (
    <section class="divided" aria-label="Cost by origin of the code">
      <h2>Cost by origin</h2>
      <div class="stack" aria-hidden="true">
        {parts.map(({ part }) => (
          <span key={part} class={`part ${part}`} style={{ flexGrow: division[part] / all }} />
        ))}
      </div>
      <ul>
        {parts.map(({ part, label, toggles, title }) => {
          const texts = (
            <>
              <span class={`dot ${part}`} /> {label} <strong>{shareText(division[part] / all)}</strong>{" "}
              <span class="dim">{costText(measure.value, division[part])}</span>
            </>
          );
          return (
            <li key={part}>
              {toggles ? (
                <button
                  type="button"
                  aria-pressed={filter.value[toggles]}
                  title={`${title}. Click: ${filter.value[toggles] ? "hide" : "show"} them in all views.`}
                  onClick={() => toggle(toggles)}
                >
                  {texts}
                </button>
              ) : (
                <span title={title}>{texts}</span>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
