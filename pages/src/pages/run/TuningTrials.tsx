/** The trials of a tuning run: hyperparameters, losses, and which were stopped. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { plural, significant } from "../../format";
import { usePrinting } from "../../parts/printing";
import type { Functions, TunedTrial } from "../../types";
import { Expandable } from "./Expandable";

const FIRST = 16;

export function TuningTrials({ functions }: { functions: Functions }): JSX.Element {
  const { trials, tuning } = functions;
  const [all, setAll] = useState(false);
  const shown = usePrinting() || all ? trials : trials.slice(0, FIRST);
  const names = Object.keys(tuning?.space ?? {});
  return (
    <>
      <Expandable<TunedTrial>
        caption="Trials, best first"
        word="Trial"
        rows={shown}
        number={(trial) => trial.trial}
        name={() => ""}
        looks={(trial) => (trial.best ? "chosen" : trial.stopped ? "faint" : "")}
        columns={[
          ...names.map((name) => ({
            head: name.replaceAll("_", " "),
            cell: (trial: TunedTrial) => significant(trial.hyperparameters[name] ?? 0, 4),
            by: (trial: TunedTrial) => trial.hyperparameters[name] ?? null,
          })),
          { head: "Loss", cell: (trial) => loss(last(trial)), by: last },
          { head: "Epochs", cell: (trial) => String(trial.epochs), by: (trial) => trial.epochs, wide: true },
          { head: "Stopped", cell: stopped, wide: true },
        ]}
        facts={(trial) => [
          ["Losses", trial.losses.map((each, i) => `stage ${i + 1}: ${loss(each)}`).join(", ")],
          ["Outcome", trial.best ? "the best" : stopped(trial) === "–" ? "still in the search" : `stopped ${stopped(trial)}`],
          ["Hyperparameters", names.map((name) => `${name} ${significant(trial.hyperparameters[name] ?? 0, 6)}`).join(", ")],
        ]}
      />
      {shown.length < trials.length && (
        <p>
          <button type="button" class="button small" onClick={() => setAll(true)}>
            Show all {trials.length}
          </button>
        </p>
      )}
      {tuning !== null && trials.length < tuning.trials && (
        <p class="note">
          {plural(trials.length, "trial")} of {tuning.trials}: those that trained the longest.
        </p>
      )}
    </>
  );
}

function last(trial: TunedTrial): number | null {
  return trial.losses.at(-1) ?? null;
}

function loss(value: number | null): string {
  return value === null ? "diverged" : significant(value, 4);
}

function stopped(trial: TunedTrial): string {
  return trial.stopped ? `after stage ${trial.losses.length}` : "–";
}
