/** A serving run: the model's operators, latency against throughput, all trials. */

import type { JSX } from "preact";
import { BestSoFar } from "../../charts/BestSoFar";
import { Latency, latencies, latency, price } from "../../charts/Latency";
import { Operators } from "../../charts/Operators";
import { Spend } from "../../charts/Spend";
import { milliseconds, rate, usd } from "../../format";
import { inReport } from "../../parts/report";
import type { Serving as Doc, Trial, View } from "../../types";
import { Expandable } from "./Expandable";
import { OtherLimits } from "./OtherLimits";

/** The answer as a chart: latency against throughput. */
export function Served({ view, serving }: { view: View; serving: Doc }): JSX.Element {
  return (
    <section class="card">
      {drawn(serving).map((figure) => (
        <Latency key={figure} serving={serving} minRate={serving.min_rate} {...(figure ? { first: figure } : {})} />
      ))}
      <OtherLimits run={view.summary.run} tries="trials" />
    </section>
  );
}

export function Serving({ view, serving }: { view: View; serving: Doc }): JSX.Element {
  return (
    <div class="charts">
      <section class="card">
        <BestSoFar serving={serving} goal={view.summary.goal} />
      </section>
      <section class="card">
        <Spend spend={view.spend} />
      </section>
      {serving.operators.length > 0 && (
        <section class="card">
          <Operators operators={serving.operators} />
        </section>
      )}
    </div>
  );
}

/** One chart with a choice of latency; in a report, which has no controls, one chart for each latency with a cap. */
function drawn({ caps }: Doc): string[] {
  return inReport() && caps.length > 1 ? caps.map((cap) => cap.figure) : [""];
}

/** The trials side by side: settings and results. Knobs that never changed are listed below. */
export function Trials({ serving }: { serving: Doc }): JSX.Element {
  const { trials } = serving;
  const knobs = [...new Set(trials.flatMap((trial) => Object.keys(trial.knobs)))];
  const varied = knobs.filter((knob) => new Set(trials.map((trial) => String(trial.knobs[knob]))).size > 1);
  const fixed = knobs.filter((knob) => !varied.includes(knob));
  const figures = latencies(serving);
  const ms = (trial: Trial, figure: string): string => {
    const found = latency(trial, figure);
    return found === null ? "–" : milliseconds(found);
  };
  const main = serving.caps[0]?.figure ?? "p95";
  return (
    <>
      <Expandable<Trial>
        caption="Every trial, in order"
        word="Trial"
        rows={trials}
        number={(trial) => trial.number}
        name={(trial) =>
          varied.map((knob) => `${knob.replaceAll("_", " ")} ${String(trial.knobs[knob] ?? "–")}`).join(", ") ||
          trial.label
        }
        looks={(trial) => (trial.chosen ? "chosen" : trial.rate === null ? "faint" : "")}
        columns={[
          {
            head: serving.unit,
            cell: (trial) => (trial.rate === null ? outcome(trial) : rate(trial.rate)),
            by: (trial) => trial.rate,
          },
          ...figures.map((figure) => ({
            head: figure.replace("_", " "),
            cell: (trial: Trial) => ms(trial, figure),
            wide: figure !== main,
            by: (trial: Trial) => latency(trial, figure),
          })),
          {
            head: "$ per million",
            cell: (trial) => (trial.usd_per_million === null ? "–" : price(trial.usd_per_million)),
            wide: true,
            by: (trial) => trial.usd_per_million,
          },
          { head: "Meets all", cell: (trial) => (trial.rate === null ? "–" : trial.keeps ? "yes" : "no"), wide: true },
          { head: "Cost", cell: (trial) => usd(trial.usd), wide: true, by: (trial) => trial.usd },
        ]}
        facts={(trial) => [
          ["Why", trial.because],
          ["Settings", trial.label],
          [
            "Measured",
            trial.rate === null
              ? outcome(trial)
              : `${rate(trial.rate)} ${serving.unit}; ${figures.map((figure) => `${figure} ${ms(trial, figure)}`).join(", ")}`,
          ],
          ...(trial.usd_per_million === null
            ? []
            : ([["Price", `${price(trial.usd_per_million)} a million`]] as [string, string][])),
          [
            "Requirements",
            trial.rate === null ? "nothing was measured" : trial.keeps ? "all met" : "not all met",
          ],
        ]}
      />
      {fixed.length > 0 && (
        <p class="note">
          The same in all trials:{" "}
          {fixed.map((knob) => `${knob.replaceAll("_", " ")} ${String(trials[0]?.knobs[knob])}`).join(", ")}.
        </p>
      )}
    </>
  );
}

function outcome(trial: Trial): string {
  return trial.outcome.replaceAll("_", " ");
}
