/** What can be done with a log: choose, search, follow, jump to an error, download. */

import type { JSX } from "preact";
import { useId, useRef } from "preact/hooks";
import { ROOT, runPath, withQuery } from "../../../api";
import { useKeys } from "../../../parts/keys";
import type { LogParts } from "../../../types";
import type { Source } from "./useLogWindow";
import type { LogSearch } from "./useLogSearch";

interface Props {
  source: Source;
  parts: LogParts | null;
  onChoose: (change: Partial<Source>) => void;
  text: string;
  onText: (text: string) => void;
  searched: LogSearch;
  follows: boolean;
  onFollow: () => void;
  onError: () => void;
}

export function Tools(props: Props): JSX.Element {
  const { source, parts, onChoose, follows, onFollow, onError } = props;
  const { run, launch, process } = source;
  return (
    <div class="log-tools">
      {parts !== null && (
        <>
          <Choice
            label="Launch"
            of={parts.launches}
            chosen={launch}
            onChoose={(value) => onChoose({ launch: value, process: 0, rank: null })}
          />
          <Choice
            label="Process"
            of={parts.processes}
            chosen={process}
            onChoose={(value) => onChoose({ process: value ?? 0, rank: null })}
          />
          <Choice label="Rank" of={parts.ranks} chosen={source.rank} all onChoose={(value) => onChoose({ rank: value })} />
        </>
      )}
      <Search {...props} />
      <label class="check">
        <input
          type="checkbox"
          checked={source.reports}
          onChange={(event) => onChoose({ reports: event.currentTarget.checked })}
        />
        Reports of progress
      </label>
      <span class="log-acts">
        <button type="button" class="button" aria-pressed={follows} onClick={onFollow}>
          Follow the end
        </button>
        <button type="button" class="button" onClick={onError}>
          First error
        </button>
        <a class="button" href={`${ROOT}${withQuery(runPath(run, "/logs/file"), { launch, process })}`} download>
          Download
        </a>
      </span>
    </div>
  );
}

function Search({ text, onText, searched }: Props): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  useKeys({ s: () => field.current?.focus() });
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === "Enter") (event.shiftKey ? searched.previous : searched.next)();
    else if (event.key === "Escape") onText("");
    else return;
    event.preventDefault();
  };
  return (
    <span class="log-search" role="search" aria-label="In this log">
      <input
        ref={field}
        type="search"
        aria-label="Search in this log"
        placeholder="Search"
        value={text}
        maxLength={200}
        onInput={(event) => onText(event.currentTarget.value)}
        onKeyDown={pressed}
      />
      <button type="button" class="button" aria-label="Previous match" disabled={searched.at.length === 0} onClick={searched.previous}>
        ↑
      </button>
      <button type="button" class="button" aria-label="Next match" disabled={searched.at.length === 0} onClick={searched.next}>
        ↓
      </button>
      <span class="found">{searched.words}</span>
    </span>
  );
}

interface ChoiceProps {
  label: string;
  of: number[];
  chosen: number | null;
  /** All of them can be chosen together. */
  all?: boolean;
  onChoose: (value: number | null) => void;
}

/** One of several; nothing where there is no choice. */
function Choice({ label, of, chosen, all = false, onChoose }: ChoiceProps): JSX.Element | null {
  const id = useId();
  if (of.length < 2) return null;
  return (
    <span class="choice">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={chosen === null ? "" : String(chosen)}
        onChange={({ currentTarget: { value } }) => onChoose(value === "" ? null : Number(value))}
      >
        {all && <option value="">all</option>}
        {of.map((each) => (
          <option key={each} value={String(each)}>
            {each}
          </option>
        ))}
      </select>
    </span>
  );
}
