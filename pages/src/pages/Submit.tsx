import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, get, line, runPath, send, upload, withQuery } from "../api";
import type { Schema } from "../editor/schema";
import { bytes, usd } from "../format";
import { useGet } from "../live";
import { announce } from "../parts/announce";
import { Card } from "../parts/Card";
import { Command } from "../parts/Command";
import { Field } from "../parts/Field";
import { may, useMe, useRefreshMe } from "../parts/me";
import { Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { go, toRun, usePlace } from "../parts/router";
import { submissionOf, EMPTY, shellCommand, isReady, kindOf, mistake, rents, formValuesOf, type Draft, type Mistake } from "../parts/submit/submission";
import { Model } from "../parts/submit/Model";
import { Options } from "../parts/submit/Options";
import { Outcome, realMoney } from "../parts/submit/Outcome";
import { Editor } from "../parts/submit/Editor";
import { useMistakes } from "../parts/submit/Mistakes";
import { Drop, Examples } from "../parts/submit/Source";
import type { Checked, Example, JobFile, Kind, Me, Uploaded, View } from "../types";

const JOB = `name: my-job
run: torchrun --nnodes $SKYPILOT_NUM_NODES train.py

mlcd:
  work: {dataset: 1.28M, epochs: 90}
  goal: fastest
  budget: $100`;
const KNOBS = `knobs:
  precision: [fp32, int8]
  threads: [1, 2]
  batch: [1, 2, 4, 8]`;

/** A form for a job file or a model: options, a free check, and the start. */
export default function Submit(): JSX.Element {
  const me = useMe();
  const refreshMe = useRefreshMe();
  const examples = useGet<{ examples: Example[] }>("/examples").data?.examples ?? [];
  const [draft, setDraft] = useState<Draft>(EMPTY);
  const [checked, setChecked] = useState<Checked | null>(null);
  const [asks, setAsks] = useState<string | null>(null);
  const [wrong, setWrong] = useState<Mistake | null>(null);
  const [busy, setBusy] = useState<string | null>(null);
  const [fileError, setFileError] = useState<string | null>(null);
  const allowed = may(me, "runner");
  const schema = useGet<Schema>("/schemas/job").data;
  const mistakes = useMistakes(draft.job, allowed && draft.kind !== "serve");

  const change = (part: Partial<Draft>): void => {
    setDraft((before) => ({ ...before, ...part }));
    setChecked(null);
    setAsks(null);
    setWrong(null);
  };
  const take = async (file: File): Promise<void> => {
    setFileError(tooMuch(file, me));
    if (tooMuch(file, me) !== null) return;
    if (!file.name.toLowerCase().endsWith(".onnx")) {
      const job = await file.text();
      change({ kind: kindOf(job), job, name: file.name });
      return;
    }
    setBusy(`Reading ${file.name}, ${bytes(file.size)} …`);
    try {
      change({ kind: "serve", model: await upload<Uploaded>(withQuery("/uploads", { name: file.name }), file) });
    } catch (error) {
      setFileError(line(error));
    } finally {
      setBusy(null);
    }
  };
  const ask = async <T,>(path: string, words: string): Promise<T | null> => {
    setBusy(words);
    setWrong(null);
    try {
      const agreed = asks !== null && path === "/runs";
      return await send<T>("POST", path, agreed ? { ...submissionOf(draft), yes: true } : submissionOf(draft));
    } catch (error) {
      if (error instanceof ApiError && error.asks !== null) {
        setAsks(error.asks);
        announce(error.asks);
        return null;
      }
      const found = error instanceof ApiError ? mistake(error, draft) : { about: "", words: line(error), line: null };
      setWrong(found);
      announce(found.words);
      return null;
    } finally {
      setBusy(null);
    }
  };
  const check = async (): Promise<void> => {
    const found = await ask<Checked>("/checks", "Checking …");
    setChecked(found);
    setAsks(found?.asks ?? null);
    if (found?.asks) announce(realMoney(found));
  };
  const proceed = async (): Promise<void> => {
    if (!allowed || busy !== null || !isReady(draft)) return;
    if (checked === null) {
      await check();
      return;
    }
    const started = await ask<{ run: string }>("/runs", "Starting …");
    refreshMe();
    if (started !== null) go(toRun(started.run));
  };
  const from = usePlace().query.get("from") ?? "";
  useEffect(() => {
    if (!from) return;
    void Promise.all([get<JobFile>(runPath(from, "/job")), get<View>(runPath(from))]).then(
      ([{ kind, name, job, options }, { summary }]) => {
        const labels = { project: summary.project ?? "", tag: summary.tags.join(", ") };
        change({ kind: kind as Kind, name, job, words: { ...formValuesOf(options), ...labels } });
      },
      (error: unknown) => setFileError(line(error)),
    );
  }, [from]); // to edit and run: the job file of an earlier run
  const byKeys = (): void => {
    if (asks === null) void proceed(); // real money is agreed to by the button that says how much
  };
  const on = draft.words["on"] ?? "";
  useEffect(() => {
    if (rents(on) && allowed && busy === null && isReady(draft) && checked === null) void check();
  }, [on]); // before real money: what is ahead is shown as soon as such a place is chosen
  useEffect(() => {
    if (wrong === null) return;
    setChecked(null); // the check is outdated
    setAsks(null);
  }, [wrong]);
  useEffect(() => {
    if (wrong !== null) document.querySelector("[aria-invalid=true]")?.scrollIntoView({ block: "nearest" });
  }, [wrong]);
  const about = (name: string): Pick<Mistake, "words" | "line"> | null => (wrong?.about === name ? wrong : null);
  return (
    <Page title="Submit" lead="Drop a file, check it, start it. A check costs nothing and reserves nothing.">
      {!allowed && <Notice tone="caution">Your role is viewer: ask an admin for the role runner to submit runs.</Notice>}
      <div class="submit">
        <div class="submit-source">
          <Drop onFile={(file) => void take(file)} busy={busy?.startsWith("Reading") ? busy : null} error={fileError} />
          {draft.kind === "serve" ? (
            <>
              <Served draft={draft} onChange={change} error={about("model")?.words ?? null} />
              <Editor
                id="knobs"
                label="Knobs: settings to try, and their prices (empty: defaults)"
                rows={9}
                placeholder={KNOBS}
                text={draft.knobs}
                error={about("knobs")?.words ?? null}
                line={about("knobs")?.line ?? null}
                onWrite={(knobs) => change({ knobs })}
                onSend={byKeys}
              />
              <Examples
                label="Start with"
                of={examples.filter(({ kind }) => kind === "serve")}
                onChoose={({ text }) => change({ knobs: text })}
              />
            </>
          ) : (
            <>
              <Examples
                label="Start with"
                of={examples.filter(({ kind }) => kind !== "serve")}
                onChoose={({ name, kind, text }) =>
                  change({
                    name: `${name}.yaml`,
                    job: text,
                    kind: name === "functions" ? kindOf(text) : kind,
                  })
                }
              />
              <Editor
                id="job"
                label={draft.name}
                rows={22}
                placeholder={JOB}
                text={draft.job}
                error={mistakes?.length ? null : (about("job")?.words ?? null)}
                line={about("job")?.line ?? null}
                mistakes={mistakes}
                schema={schema}
                onWrite={(job) => change({ job })}
                onSend={byKeys}
              />
            </>
          )}
        </div>
        <Card class="submit-how">
          <form
            onSubmit={(event) => {
              event.preventDefault();
              void proceed();
            }}
          >
            <Options draft={draft} me={me} mistake={wrong} onChange={change} />
            {about("") !== null && <Notice tone="bad">{about("")?.words}</Notice>}
            {checked !== null && <Outcome checked={checked} />}
            {checked !== null && <Command words={shellCommand(draft)} />}
            {asks !== null && (
              <Notice tone="caution">
                {checked !== null && <b>{realMoney(checked)} </b>}
                {asks}
              </Notice>
            )}
            <div class="actions">
              <button type="submit" class="button primary" disabled={!allowed || busy !== null || !isReady(draft)}>
                {busy !== null && !busy.startsWith("Reading") ? busy : checked === null ? "Check" : startWords(checked, asks)}
              </button>
              {isReady(draft) ? (
                asks === null && <span class="note by-keys">or Ctrl+Enter in the file</span>
              ) : (
                <span class="note">add a job file or a model first</span>
              )}
            </div>
          </form>
        </Card>
      </div>
    </Page>
  );
}

/** The button that starts a run; where that costs real money, its words say what is agreed to. */
function startWords(checked: Checked, asks: string | null): string {
  if (asks === null) return "Start";
  return checked.budget_usd ? `Yes, spend up to ${usd(checked.budget_usd)}` : "Yes, spend without a budget";
}

/** What is wrong with a file before it is sent; null: nothing. */
function tooMuch(file: File, me: Me): string | null {
  if (/\.onnx$/i.test(file.name)) {
    const most = (me.limits["upload_mb"] ?? 200) * 2 ** 20;
    return file.size > most ? `${file.name} has ${bytes(file.size)}; the limit for a model is ${bytes(most)}` : null;
  }
  if (!/\.(ya?ml|json|txt)$/i.test(file.name))
    return `${file.name}: expected a job file (.yaml) or an ONNX model (.onnx)`;
  const most = (me.limits["body_kb"] ?? 256) * 1e3;
  return file.size > most ? `${file.name} has ${bytes(file.size)}; the limit for a job file is ${bytes(most)}` : null;
}

interface ServedProps {
  draft: Draft;
  error: string | null;
  onChange: (part: Partial<Draft>) => void;
}

/** The model that is to be served: uploaded, or one of a recorded cloud. */
function Served({ draft, error, onChange }: ServedProps): JSX.Element {
  if (draft.model !== null) return <Model model={draft.model} onLeave={() => onChange({ model: null })} />;
  return (
    <Field
      label="Or a model of a recorded cloud"
      error={error}
      hint="Its name in the recording; choose the recording under Where."
    >
      <input
        type="text"
        autocomplete="off"
        spellcheck={false}
        placeholder="transformer_4x128"
        value={draft.recorded}
        onInput={(event) => onChange({ recorded: event.currentTarget.value })}
      />
    </Field>
  );
}
