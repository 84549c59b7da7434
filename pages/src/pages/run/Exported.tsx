/** The decision as files for another tool, to read and to copy. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { runPath } from "../../api";
import { Segments } from "../../charts/Segments";
import { useGet } from "../../live";
import { useCopy } from "../../parts/copy";
import { Loading, Notice } from "../../parts/Notice";
import { answered, inReport } from "../../parts/report";

const TOOLS: Record<string, string[]> = {
  train: ["skypilot"],
  scale: ["skypilot"],
  serve: ["kserve", "triton", "mlserver", "compose"],
  "serve a language model": ["vllm", "sglang", "compose", "kserve", "skyserve", "dynamo"],
  tune: ["lambda"],
  functions: ["lambda"],
};

function toolsOf(kind: string): string[] {
  return TOOLS[kind] ?? ["skypilot"];
}

/** A report has no switch: the files for every tool, one after another, or the command that writes them. */
export function Exported({ run, kind }: { run: string; kind: string }): JSX.Element {
  const tools = toolsOf(kind);
  if (!inReport()) return <Chosen run={run} kind={kind} />;
  const found = tools.flatMap((tool) => {
    const files = answered<{ files: Record<string, string> }>(runPath(run, `/export?to=${tool}`))?.files;
    return files ? [{ tool, files }] : [];
  });
  return (
    <div class="exported">
      {found.length === 0 && <code>{`mlcd export ${run} --to ${tools[0]}`}</code>}
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

function Chosen({ run, kind }: { run: string; kind: string }): JSX.Element {
  const tools = toolsOf(kind);
  const [tool, setTool] = useState(tools[0]!);
  const { data, error } = useGet<{ files: Record<string, string> }>(runPath(run, `/export?to=${tool}`));
  return (
    <div class="exported">
      {tools.length > 1 && <Segments label="For which tool" of={tools} chosen={tool} onChoose={setTool} />}
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
