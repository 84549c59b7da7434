/** What can be done with the runs that are ticked: compare them, archive them. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { line, runPath, send, withQuery } from "../api";
import { plural } from "../format";
import { announce } from "./announce";
import { may, useMe } from "./me";
import { Link } from "./router";

const MOST_COMPARED = 6;

interface Props {
  ticked: ReadonlySet<string>;
  /** Whether those that are listed are archived. */
  archived: boolean;
  onClear: () => void;
  onChanged: () => void;
}

export function Ticked({ ticked, archived, onClear, onChanged }: Props): JSX.Element | null {
  const me = useMe();
  const [error, setError] = useState<string | null>(null);
  if (ticked.size === 0) return null;
  const archive = async (): Promise<void> => {
    setError(null);
    try {
      for (const run of ticked) await send("PATCH", runPath(run, "/labels"), { archived: !archived });
      announce(`${plural(ticked.size, "run")} ${archived ? "listed again" : "archived"}`);
      onClear();
    } catch (problem) {
      setError(line(problem));
    }
    onChanged();
  };
  return (
    <div class="ticked" role="group" aria-label="Ticked runs">
      <b>{plural(ticked.size, "run")} ticked</b>
      {ticked.size >= 2 && ticked.size <= MOST_COMPARED ? (
        <Link class="button primary small" to={withQuery("/compare", { runs: [...ticked].join(",") })}>
          Compare
        </Link>
      ) : (
        <span class="soft">{ticked.size < 2 ? "Tick another one to compare." : `At most ${MOST_COMPARED} compare.`}</span>
      )}
      {may(me, "runner") && (
        <button type="button" class="button small" onClick={() => void archive()}>
          {archived ? "Take out of the archive" : "Archive"}
        </button>
      )}
      <button type="button" class="button quiet small" onClick={onClear}>
        Untick all
      </button>
      {error !== null && (
        <span class="field-error" role="alert">
          {error}
        </span>
      )}
    </div>
  );
}
