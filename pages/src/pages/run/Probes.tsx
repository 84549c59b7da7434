/** All probes with cost, interval and reason, and the refused ones. */

import type { JSX } from "preact";
import { duration, plural, rate, usd } from "../../format";
import type { Refusal, Step } from "../../types";
import { type Cell, Expandable } from "./Expandable";

interface Props {
  path: Step[];
  refusals: Refusal[];
  unit: string;
}

export function Probes({ path, refusals, unit }: Props): JSX.Element {
  return (
    <>
      <Expandable
        caption="Every probe, in order"
        word="Probe"
        rows={path}
        number={(step) => step.number}
        name={(step) => step.label}
        looks={(step) => (step.chosen ? "chosen" : step.outcome === "ok" ? "" : "faint")}
        columns={columns(path, unit)}
        facts={(step) => facts(step, unit)}
      />
      {refusals.length > 0 && (
        <details class="more refusals">
          <summary>
            {plural(refusals.length, "refused probe")}: the job could not have been finished within the limits afterwards
          </summary>
          <ul>
            {refusals.map((each, i) => (
              <li key={i}>
                <b>{each.label}</b> <span class="soft">{each.because}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function columns(path: Step[], unit: string): Cell<Step>[] {
  const rated = path.some((step) => step.rate !== null);
  const finishes = path.some((step) => step.finish !== null);
  const outcome = (step: Step): string => step.outcome.replaceAll("_", " ");
  const found: (Cell<Step> | false)[] = [
    {
      head: rated ? unit : "Outcome",
      cell: (step) => (step.rate === null ? outcome(step) : rate(step.rate)),
      wide: !rated,
      by: rated ? (step) => step.rate : undefined,
    },
    rated && { head: "Interval", cell: interval, wide: true },
    path.some((step) => step.gpus > 0) && {
      head: "GPUs",
      cell: (step) => (step.gpus > 0 ? `${step.gpus} x ${step.gpu}` : "–"),
      wide: true,
      by: (step) => step.gpus,
    },
    path.some((step) => step.usd_per_hour > 0) && {
      head: "$/h",
      cell: (step) => usd(step.usd_per_hour),
      wide: true,
      by: (step) => step.usd_per_hour,
    },
    finishes && {
      head: "Cost to finish",
      cell: (step) => (step.finish ? usd(step.finish.usd) : "–"),
      wide: true,
      by: (step) => step.finish?.usd ?? null,
    },
    finishes && {
      head: "Time to finish",
      cell: (step) => (step.finish ? duration(step.finish.seconds) : "–"),
      wide: true,
      by: (step) => step.finish?.seconds ?? null,
    },
    { head: "Cost", cell: (step) => usd(step.usd), by: (step) => step.usd },
    { head: "Took", cell: (step) => duration(step.seconds), wide: true, by: (step) => step.seconds },
  ];
  return found.filter((each) => each !== false);
}

function interval(step: Step): string {
  if (step.low === null || step.high === null || step.rate === null) return "–";
  return `${rate(step.low)} … ${rate(step.high)}`;
}

function facts(step: Step, unit: string): [string, string][] {
  const found: [string, string][] = [["Why", step.because]];
  if (step.rate !== null && step.low !== null && step.high !== null)
    found.push(["Measured", `${rate(step.rate)} ${unit}, between ${rate(step.low)} and ${rate(step.high)}`]);
  else found.push(["Outcome", step.outcome.replaceAll("_", " ")]);
  if (step.finish)
    found.push([
      "To finish",
      `${duration(step.finish.seconds)} and ${usd(step.finish.usd)} expected; worst case ${duration(step.finish.worst_seconds)} and ${usd(step.finish.worst_usd)}`,
    ]);
  found.push(["Took", `${duration(step.seconds)} and ${usd(step.usd)}`]);
  if (step.certified !== null)
    found.push([
      "Certified",
      step.certified ? "yes: the limits hold even at the slow end of the interval" : "no: at the slow end of the interval, a limit is exceeded",
    ]);
  if (step.detail) found.push(["Detail", step.detail]);
  return found;
}
