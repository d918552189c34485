// The files, those with the highest cost first.

import { useEffect, useRef, useState } from "preact/hooks";
import type { FileCost, SourceFiles } from "../../../engine/source";
import type { StringIndex } from "../../../shared/format";
import { costText, countText, shareText } from "../../../shared/units";
import { measure, names, search } from "../../state";

const FEW = 200;
const NO_TEXT = "The text was not available when the report was made";

interface Properties {
  files: SourceFiles;
  current: StringIndex;
  choose(file: StringIndex): void;
}

export function FileList({ files, current, choose }: Properties) {
  const [isAll, setAll] = useState(false);
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const pathOf = (file: FileCost) => names().strings[file.file] ?? "";
  const found = files.files.filter((file) => {
    const path = pathOf(file).toLowerCase();
    return words.every((word) => path.includes(word));
  });
  // A search that matches only functions does not filter files.
  const isFiltered = words.length > 0 && found.length > 0;
  const shown = isFiltered ? found : files.files;
  const some = shown.slice(0, isAll ? shown.length : FEW);
  const list = useRef<HTMLElement>(null);
  useEffect(() => {
    list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [current]);
  return (
    <nav class="files" aria-label="Files" ref={list}>
      <output class="summary" aria-live="polite">
        {isFiltered
          ? `${countText(shown.length)} of ${countText(files.files.length)} files found`
          : `${countText(shown.length)} files by self cost`}
      </output>
      <ul>
        {some.map((file) => (
          <li key={file.file}>
            <FileButton
              file={file}
              path={pathOf(file)}
              all={files.all}
              isCurrent={file.file === current}
              choose={choose}
            />
          </li>
        ))}
      </ul>
      {some.length < shown.length && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {countText(shown.length)} files
        </button>
      )}
    </nav>
  );
}

interface FileProperties {
  file: FileCost;
  path: string;
  all: number;
  isCurrent: boolean;
  choose(file: StringIndex): void;
}

function FileButton({ file, path, all, isCurrent, choose }: FileProperties) {
  const cut = path.lastIndexOf("/") + 1;
  const share = (cost: number) => (all > 0 ? shareText(cost / all) : "");
  const costs = `self ${costText(measure.value, file.self)}, total ${costText(measure.value, file.total)} (${share(file.total)})`;
  return (
    <button
      type="button"
      class={file.hasText ? "" : "without-text"}
      aria-current={isCurrent ? "true" : undefined}
      title={`${path}\n${costs}${file.hasText ? "" : `\n${NO_TEXT}.`}`}
      onClick={() => choose(file.file)}
    >
      <span class="fill" style={{ width: `${all > 0 ? Math.min(100, (100 * file.self) / all) : 0}%` }} />
      <bdi>{path.slice(cut)}</bdi>
      <span class="folder">{path.slice(0, cut)}</span>
      <span class="share">{share(file.self)}</span>
      {!file.hasText && <span class="hidden-text">{NO_TEXT}</span>}
    </button>
  );
}
