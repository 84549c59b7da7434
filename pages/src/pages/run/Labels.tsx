/** The labels of a run: project, tags, note, archived. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { line, runPath, send, withQuery } from "../../api";
import { useGet } from "../../live";
import { Badge } from "../../parts/Badge";
import { Field } from "../../parts/Field";
import { may, useMe } from "../../parts/me";
import { Notice } from "../../parts/Notice";
import { Link } from "../../parts/router";
import type { LabelsInUse, Summary } from "../../types";
import { changeOf } from "./labelChange";

export function Labels({ run, onChanged }: { run: Summary; onChanged: () => void }): JSX.Element | null {
  const me = useMe();
  const [open, setOpen] = useState(false);
  const mine = may(me, "runner") && (me.role === "admin" || run.owner === me.name);
  const none = run.project === null && run.tags.length === 0 && !run.note && !run.archived;
  if (none && !mine) return null;
  return (
    <section class="labels" aria-label="Labels">
      <p class="chips">
        {run.archived && <Badge tone="caution">archived</Badge>}
        {run.project !== null && (
          <Link class="chip" to={withQuery("/", { project: run.project })}>
            {run.project}
          </Link>
        )}
        {run.tags.map((tag) => (
          <Link key={tag} class="chip" to={withQuery("/", { tag })}>
            #{tag}
          </Link>
        ))}
        {mine && (
          <button type="button" class="linked" onClick={() => setOpen(true)}>
            {none ? "Add a project, tags, a note" : "Change"}
          </button>
        )}
      </p>
      {run.note && <p class="run-note">{run.note}</p>}
      {open && <Edit run={run} onClose={() => setOpen(false)} onChanged={onChanged} />}
    </section>
  );
}

function Edit({ run, onClose, onChanged }: { run: Summary; onClose: () => void; onChanged: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const known = useGet<LabelsInUse>("/labels").data;
  const [now, setNow] = useState({
    project: run.project ?? "",
    tags: run.tags.join(" "),
    note: run.note,
    archived: run.archived,
  });
  const [error, setError] = useState<string | null>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await send("PATCH", runPath(run.run, "/labels"), changeOf(run, now));
      onChanged();
      onClose();
    } catch (problem) {
      setError(line(problem));
    }
  };
  return (
    <dialog ref={dialog} class="confirm" aria-labelledby="labels-title" onClose={onClose}>
      <form class="label-form" onSubmit={(event) => void save(event)}>
        <h2 id="labels-title">Labels of {run.run}</h2>
        <Field label="Project" hint="One word; empty for none.">
          <input
            list="projects"
            value={now.project}
            onInput={(event) => setNow({ ...now, project: event.currentTarget.value })}
          />
        </Field>
        <Field label="Tags" hint="Separated by spaces.">
          <input value={now.tags} onInput={(event) => setNow({ ...now, tags: event.currentTarget.value })} />
        </Field>
        <Field label="Note">
          <textarea rows={4} value={now.note} onInput={(event) => setNow({ ...now, note: event.currentTarget.value })} />
        </Field>
        <label class="tick">
          <input
            type="checkbox"
            checked={now.archived}
            onChange={(event) => setNow({ ...now, archived: event.currentTarget.checked })}
          />
          <span>
            Archived
            <span class="under">Hidden from lists; nothing is deleted.</span>
          </span>
        </label>
        <datalist id="projects">
          {known?.projects.map(({ name }) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        {error !== null && <Notice tone="bad">{error}</Notice>}
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary">
            Save
          </button>
        </div>
      </form>
    </dialog>
  );
}
