// Files, and the text of one file with the costs of its lines.

import type { SourceFiles } from "../../../engine/source";
import type { StringIndex } from "../../../shared/format";
import { addressed } from "../../address";
import { query } from "../../engine";
import { Problem } from "../../problem";
import { names, select, selected, selection } from "../../state";
import { useAnswer } from "../../use-answer";
import { FileList } from "./files";
import { FileText } from "./text";

const fileText = addressed("source.file", "", { isStep: true });

/** Returns the file of the selected function, or the selected file, or the most expensive one. */
function currentFile({ files }: SourceFiles): StringIndex | null {
  const of = selected.value;
  const ofFunction = of === null ? 0 : (names().functions.file[of] ?? 0);
  if (ofFunction > 0) return ofFunction - 1;
  const chosen = fileText.value === "" ? -1 : Number(fileText.value);
  if (names().strings[chosen] !== undefined) return chosen;
  return (files.find((file) => file.hasText) ?? files[0])?.file ?? null;
}

function choose(file: StringIndex): void {
  const of = selected.value;
  if (of !== null && names().functions.file[of] !== file + 1) select(null);
  fileText.value = String(file);
}

export function SourceView() {
  const key = JSON.stringify(selection.value);
  const { value: files, error } = useAnswer(key, () => query("sourceFiles", selection.value));
  if (error) return <Problem what="The files can't be listed" why={error} />;
  if (!files) return <p role="status">Counting…</p>;
  const file = currentFile(files);
  if (file === null) return <p class="nothing">No function that is shown has a file. Show more kinds of functions.</p>;
  return (
    <div class="source">
      <FileList files={files} current={file} choose={choose} />
      <Current file={file} />
    </div>
  );
}

function Current({ file }: { file: StringIndex }) {
  const key = JSON.stringify([selection.value, file]);
  const { value, error, isPending } = useAnswer(key, () =>
    query("source", selection.value, file).then((source) => ({ ...source, file })),
  );
  if (error) return <Problem what="The file can't be read" why={error} />;
  if (!value) return <p role="status">Reading…</p>;
  return <FileText key={value.file} source={value} file={value.file} isPending={isPending} />;
}
