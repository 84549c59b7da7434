/** The command line's options as a form. Empty fields: as in the job file. */

import type { JSX } from "preact";
import type { Me } from "../../types";
import { Field } from "../Field";
import { KINDS, LABELS, MORE_OPTIONS, OPTIONS, type Draft, type Mistake, type Option } from "./submission";

interface OptionsProps {
  draft: Draft;
  me: Me;
  mistake: Mistake | null;
  onChange: (change: Partial<Draft>) => void;
}

export function Options({ draft, me, mistake, onChange }: OptionsProps): JSX.Element {
  const write = (name: string, value: string): void => onChange({ words: { ...draft.words, [name]: value } });
  const told = (name: string): string | null => (mistake?.about === name ? mistake.words : null);
  const one = (word: Option): JSX.Element => (
    <Choice
      key={word.name}
      word={word}
      value={draft.words[word.name] ?? ""}
      error={told(word.name)}
      onWrite={(value) => write(word.name, value)}
    />
  );
  const more = [...MORE_OPTIONS[draft.kind], ...LABELS];
  return (
    <>
      <fieldset class="kinds">
        <legend>Kind of run</legend>
        {KINDS.map(({ kind, words }) => (
          <label key={kind} class="tick">
            <input type="radio" name="kind" checked={draft.kind === kind} onChange={() => onChange({ kind })} />
            <span>
              {kind}
              <span class="under">{words}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <div class="fields">
        <Where
          places={places(me, draft)}
          unsaid={draft.kind === "serve" ? "on this machine" : "as in the job"}
          value={draft.words["on"] ?? ""}
          error={told("on")}
          onWrite={(value) => write("on", value)}
        />
        {OPTIONS[draft.kind].map(one)}
      </div>
      <details class="more" open={more.some(({ name }) => told(name) !== null) || undefined}>
        <summary>More options</summary>
        <div class="fields">{more.map(one)}</div>
      </details>
      {draft.kind !== "serve" && (
        <label class="tick">
          <input
            type="checkbox"
            checked={draft.launch}
            onChange={(event) => onChange({ launch: event.currentTarget.checked })}
          />
          <span>
            Run the job after the decision
            <span class="under">Otherwise it stops at the decision, and you can launch it from the run's page.</span>
          </span>
        </label>
      )}
    </>
  );
}

/** Ray needs a file of the server's and is for job files; a recorded cloud is named. */
function places(me: Me, draft: Draft): string[] {
  const recorded = me.places.includes("recorded") ? me.recordings.map((name) => `recorded:${name}`) : [];
  const plain = me.places.filter((place) => place !== "recorded" && place !== "ray");
  const fit = draft.kind === "serve" ? plain.filter((place) => place === "local") : plain;
  return [...(draft.kind === "tune" ? fit.filter((place) => place === "functions") : fit), ...recorded];
}

interface WhereProps {
  places: string[];
  unsaid: string;
  value: string;
  error: string | null;
  onWrite: (value: string) => void;
}

function Where({ places, unsaid, value, error, onWrite }: WhereProps): JSX.Element {
  return (
    <Field label="Where" error={error}>
      <select value={value} onChange={(event) => onWrite(event.currentTarget.value)}>
        <option value="">{unsaid}</option>
        {places.map((place) => (
          <option key={place} value={place}>
            {place}
          </option>
        ))}
      </select>
    </Field>
  );
}

interface ChoiceProps {
  word: Option;
  value: string;
  error: string | null;
  onWrite: (value: string) => void;
}

function Choice({ word, value, error, onWrite }: ChoiceProps): JSX.Element {
  if (word.of !== undefined) {
    return (
      <Field label={word.label} error={error}>
        <select value={value} onChange={(event) => onWrite(event.currentTarget.value)}>
          <option value="">{word.example}</option>
          {word.of.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      </Field>
    );
  }
  return (
    <Field label={word.label} error={error}>
      <input
        type="text"
        autocomplete="off"
        spellcheck={false}
        placeholder={word.example}
        value={value}
        onInput={(event) => onWrite(event.currentTarget.value)}
      />
    </Field>
  );
}
