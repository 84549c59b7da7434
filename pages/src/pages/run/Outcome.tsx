/** The decision under the moved limits, compared with the run's own. */

import type { JSX } from "preact";
import { latency, price } from "../../charts/Latency";
import { duration, milliseconds, rate, significant, usd } from "../../format";
import { Notice } from "../../parts/Notice";
import { type Finish, servingOf, type Trial, type View, type WhatIf } from "../../types";
import { Certificate } from "./Certificate";
import type { Asking } from "./whatIf";

type Decided = WhatIf["decision"];
type Way = Decided["relaxations"][number];

interface Props {
  view: View;
  /** The run's own choice. */
  real: string | null;
  asking: Asking;
  /** Apply a relaxation of the limits; null leaves one unchanged. */
  onTake: (way: Way) => void;
}

export function Outcome({ view, real, asking, onTake }: Props): JSX.Element {
  const { answer, error, late } = asking;
  if (answer === null)
    return error === null ? <p class="loading">Deciding …</p> : <Notice tone="bad">{error}</Notice>;
  const decided = answer.decision;
  const label = answer.label ?? null;
  return (
    <div class={late ? "what-if late" : "what-if"} aria-live="polite" aria-busy={late}>
      {error !== null && <p class="field-error">{error}</p>}
      <p class="asked">{answer.goal_words}</p>
      {label === null ? (
        <No decided={decided} onTake={onTake} />
      ) : (
        <Yes view={view} real={real} label={label} answer={answer} decided={decided} />
      )}
      {answer.certificate && answer.certificate.terms.length > 0 && <Certificate of={answer.certificate} />}
    </div>
  );
}

function No({ decided, onTake }: { decided: Decided; onTake: (way: Way) => void }): JSX.Element {
  const ways = decided.relaxations.filter((way) => wayWords(way) !== "");
  const limits = ways.filter((way) => way.confidence === null);
  return (
    <>
      <p class="verdict-line bad">
        Infeasible{decided.binding ? `: ${decided.binding}` : ""}
        {ways.length > 0 && `; needs ${ways.map(wayWords).join(", or ")}`}
      </p>
      {limits.length > 0 && (
        <ul class="ways">
          {limits.map((way, i) => (
            <li key={i}>
              <button type="button" class="button small" onClick={() => onTake(way)}>
                Set {wayWords(way)}
              </button>
              {way.label && <span class="soft">then {way.label}</span>}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function wayWords({ budget_usd, deadline_s, confidence, caps, min_rate }: Way): string {
  if (confidence !== null) return `a confidence of ${significant(100 * confidence, 10)} %`;
  return [
    budget_usd === null ? "" : usd(budget_usd),
    deadline_s === null ? "" : duration(deadline_s),
    ...caps.map(({ figure, at_most_s }) => (at_most_s === null ? "" : `${figure} ${milliseconds(1_000 * at_most_s)}`)),
    min_rate === null ? "" : `at least ${rate(min_rate)} a second`,
  ]
    .filter(Boolean)
    .join(" and ");
}

function Yes({
  view,
  real,
  label,
  answer,
  decided,
}: {
  view: View;
  real: string | null;
  label: string;
  answer: WhatIf;
  decided: Decided;
}): JSX.Element {
  const same = real === label;
  const serving = servingOf(view);
  const change =
    real === null
      ? "In the run, nothing could be certified."
      : same
        ? "The same choice as in the run."
        : `Instead of ${real}.`;
  return (
    <>
      <p class={`verdict-line ${decided.certified ? "good" : ""}`}>{label}</p>
      <p class={same ? "change soft" : "change moved"}>{change}</p>
      {decided.forecast ? (
        <Compared view={view} decided={decided} forecast={decided.forecast} same={same} />
      ) : serving !== null ? (
        <Served trials={serving.trials} unit={serving.unit} label={label} same={same} />
      ) : (
        <p>{answer.words}</p>
      )}
    </>
  );
}

interface ComparedProps {
  view: View;
  decided: Decided;
  forecast: Finish;
  same: boolean;
}

/** Time and cost to finish there, compared with the run's choice. */
function Compared({ view, decided, forecast, same }: ComparedProps): JSX.Element {
  const what = decided.curve.some((place) => place.seconds === null) ? "of all the work" : "to finish";
  const real = same ? null : (view.path.find((step) => step.chosen)?.finish ?? null);
  const rows: [string, string, string | null, string][] = [
    [
      `Time ${what}`,
      duration(forecast.seconds),
      real && duration(real.seconds),
      difference(forecast.seconds, real?.seconds),
    ],
    [`Cost ${what}`, usd(forecast.usd), real && usd(real.usd), difference(forecast.usd, real?.usd)],
    [
      "Worst-case time",
      duration(forecast.worst_seconds),
      real && duration(real.worst_seconds),
      difference(forecast.worst_seconds, real?.worst_seconds),
    ],
    [
      "Worst-case cost",
      usd(forecast.worst_usd),
      real && usd(real.worst_usd),
      difference(forecast.worst_usd, real?.worst_usd),
    ],
  ];
  return <Beside rows={rows} both={real !== null} />;
}

function Served({
  trials,
  unit,
  label,
  same,
}: {
  trials: Trial[];
  unit: string;
  label: string;
  same: boolean;
}): JSX.Element | null {
  const found = trials.find((trial) => trial.label === label);
  const real = same ? undefined : trials.find((trial) => trial.chosen);
  if (!found) return null;
  const row = (
    name: string,
    read: (trial: Trial) => number | null,
    words: (value: number) => string,
  ): [string, string, string | null, string] => {
    const [value, before] = [read(found), real ? read(real) : null];
    return [
      name,
      value === null ? "–" : words(value),
      before === null ? null : words(before),
      difference(value ?? undefined, before ?? undefined),
    ];
  };
  const rows = [
    row(unit, (trial) => trial.rate, rate),
    row("p95", (trial) => latency(trial, "p95"), milliseconds),
    row("$ a million", (trial) => trial.usd_per_million, price),
  ];
  return <Beside rows={rows} both={real !== undefined} />;
}

function Beside({ rows, both }: { rows: [string, string, string | null, string][]; both: boolean }): JSX.Element {
  return (
    <table class="beside-table">
      <caption>Changes</caption>
      <thead>
        <tr>
          <td />
          <th scope="col" class="num">
            {both ? "what if" : "expected"}
          </th>
          {both && (
            <th scope="col" class="num">
              the run
            </th>
          )}
          {both && (
            <th scope="col" class="num">
              change
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, value, before, change]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="num">{value}</td>
            {both && <td class="num">{before ?? "–"}</td>}
            {both && <td class="num">{change}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function difference(now: number | undefined, before: number | undefined): string {
  if (now === undefined || before === undefined || before === 0) return "";
  const share = now / before - 1;
  if (Math.abs(share) < 0.005) return "same";
  return `${share > 0 ? "+" : "−"}${Math.abs(100 * share).toFixed(Math.abs(share) < 0.1 ? 1 : 0)} %`;
}
