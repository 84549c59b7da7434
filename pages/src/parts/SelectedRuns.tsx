/** Actions on the selected runs of the list: compare, tag, archive. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { line, runPath, send, withQuery } from "../api";
import { plural } from "../format";
import { tagsIn } from "../pages/run/labelChange";
import type { LabelChange } from "../types";
import { announce } from "./announce";
import { may, useMe } from "./me";
import { Link } from "./router";

const MOST_COMPARED = 6;

interface Props {
  selected: ReadonlySet<string>;
  /** Whether the list shows archived runs. */
  archived: boolean;
  onClear: () => void;
  onChanged: () => void;
}

export function SelectedRuns({ selected, archived, onClear, onChanged }: Props): JSX.Element | null {
  const me = useMe();
  const [tags, setTags] = useState("");
  const [error, setError] = useState<string | null>(null);
  if (selected.size === 0) return null;
  const label = async (change: Partial<LabelChange>, done: string): Promise<boolean> => {
    setError(null);
    try {
      for (const run of selected) await send("PATCH", runPath(run, "/labels"), change);
      announce(`${plural(selected.size, "run")} ${done}`);
      return true;
    } catch (problem) {
      setError(line(problem));
      return false;
    } finally {
      onChanged();
    }
  };
  const archive = async (): Promise<void> => {
    if (await label({ archived: !archived }, archived ? "unarchived" : "archived")) onClear();
  };
  const tag = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (await label({ add_tags: tagsIn(tags) }, "tagged")) setTags("");
  };
  return (
    <div class="selected-runs" role="group" aria-label="Selected runs">
      <b>{plural(selected.size, "run")} selected</b>
      {selected.size >= 2 && selected.size <= MOST_COMPARED ? (
        <Link class="button primary small" to={withQuery("/compare", { runs: [...selected].join(",") })}>
          Compare
        </Link>
      ) : (
        <span class="soft">
          {selected.size < 2 ? "Select another run to compare." : `Only up to ${MOST_COMPARED} runs can be compared.`}
        </span>
      )}
      {may(me, "runner") && (
        <>
          <form class="tag-runs" onSubmit={(event) => void tag(event)}>
            <input
              type="text"
              aria-label="Tags for the selected runs"
              placeholder="tags"
              spellcheck={false}
              value={tags}
              onInput={(event) => setTags(event.currentTarget.value)}
            />
            <button type="submit" class="button small" disabled={tagsIn(tags).length === 0}>
              Add tags
            </button>
          </form>
          <button type="button" class="button small" onClick={() => void archive()}>
            {archived ? "Unarchive" : "Archive"}
          </button>
        </>
      )}
      <button type="button" class="button quiet small" onClick={onClear}>
        Clear selection
      </button>
      {error !== null && (
        <span class="field-error" role="alert">
          {error}
        </span>
      )}
    </div>
  );
}
