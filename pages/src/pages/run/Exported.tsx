/** The decision as files for another tool: to read and to copy. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { runPath } from "../../api";
import { Segments } from "../../charts/Segments";
import { useGet } from "../../live";
import { useCopy } from "../../parts/copy";
import { Loading, Notice } from "../../parts/Notice";
import { answered, inReport } from "../../parts/report";
import type { Kind } from "../../types";

const TOOLS: Record<Kind, string[]> = {
  train: ["skypilot"],
  scale: ["skypilot"],
  serve: ["kserve", "triton", "compose"],
  tune: ["lambda"],
  functions: ["lambda"],
};

/** A report has no switch: the files for every tool, one after another, or the command that writes them. */
export function Exported({ run, kind }: { run: string; kind: Kind }): JSX.Element {
  if (!inReport()) return <Chosen run={run} kind={kind} />;
  const found = TOOLS[kind].flatMap((tool) => {
    const files = answered<{ files: Record<string, string> }>(runPath(run, `/export?to=${tool}`))?.files;
    return files ? [{ tool, files }] : [];
  });
  return (
    <div class="exported">
      {found.length === 0 && <code>{`mlcd export ${run} --to ${TOOLS[kind][0]}`}</code>}
      {found.map(({ tool, files }) => (
        <section key={tool}>
          <h3>{tool}</h3>
          {Object.entries(files).map(([name, text]) => (
            <Paper key={name} name={name} text={text} />
          ))}
        </section>
      ))}
    </div>
  );
}

function Chosen({ run, kind }: { run: string; kind: Kind }): JSX.Element {
  const [tool, setTool] = useState(TOOLS[kind][0]!);
  const { data, error } = useGet<{ files: Record<string, string> }>(runPath(run, `/export?to=${tool}`));
  return (
    <div class="exported">
      {TOOLS[kind].length > 1 && <Segments label="For which tool" of={TOOLS[kind]} chosen={tool} onChoose={setTool} />}
      {error !== null ? (
        <Notice>{error.message}</Notice>
      ) : data === null ? (
        <Loading what="the files" />
      ) : (
        Object.entries(data.files).map(([name, text]) => <Paper key={name} name={name} text={text} />)
      )}
    </div>
  );
}

function Paper({ name, text }: { name: string; text: string }): JSX.Element {
  const paper = useRef<HTMLPreElement>(null);
  const [copied, copy] = useCopy(text, name, paper);
  return (
    <div class="file">
      <div class="file-head">
        <code>{name}</code>
        <button type="button" class="button small" onClick={copy}>
          {copied ? "Copied" : "Copy"}
        </button>
      </div>
      <pre ref={paper} class="paper" tabIndex={0} aria-label={name}>
        {text}
      </pre>
    </div>
  );
}
