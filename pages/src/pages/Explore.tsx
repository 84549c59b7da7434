/** Drag a limit and see what would be decided: from stored probes, at no cost. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { runPath } from "../api";
import { capsOf, Latency, latencies, latency } from "../charts/Latency";
import { Ranking } from "../charts/Ranking";
import { Tradeoff } from "../charts/Tradeoff";
import { duration, milliseconds, rate, usd } from "../format";
import { useGet } from "../live";
import { Badge } from "../parts/Badge";
import { Command, optionsOf } from "../parts/Command";
import { Loading, Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { Link, toRun } from "../parts/router";
import { functionsOf, type Serving, servingOf, type Tradeoff as TradeoffDoc, type View } from "../types";
import { ContinueActions } from "./run/Continue";
import { Limit } from "./run/Limit";
import { Outcome } from "./run/Outcome";
import { fromAddress, goalOfAddress, useAddress } from "./run/permalink";
import { durationWord, parseDuration, parseMs, parseRate, parseUsd, rounded } from "./run/values";
import { useWhatIf } from "./run/whatIf";
import "./run/run.css";

const GOALS = {
  any: ["fastest", "cheapest"],
  scale: ["knee", "fastest", "cheapest"],
  serve: ["per-dollar", "fastest", "cheapest"],
};

export default function Explore({ run }: { run: string }): JSX.Element {
  const { data: view, error } = useGet<View>(runPath(run));
  const serving = view && servingOf(view);
  const { data: tradeoff, error: none } = useGet<TradeoffDoc>(
    view === null || serving !== null ? null : runPath(run, "/tradeoff"),
  );
  const problem = error ?? none;
  const above = (
    <p class="run-about">
      <Link to="/">Runs</Link>
      <span aria-hidden="true">/</span>
      <Link to={toRun(run)}>{run}</Link>
      <Badge tone="accent">from stored probes, at no cost</Badge>
    </p>
  );
  const lead = (
    <>
      Move a limit: the decision is made again from the stored measurements, as <code>mlcd what-if</code> does. A search
      with this limit from the start might have probed other configurations.
    </>
  );
  return (
    <Page title={view === null ? run : `${view.summary.job}: what if?`} above={above} lead={lead}>
      {problem !== null && <Notice tone="bad">{problem.message}</Notice>}
      {view === null || (serving === null && tradeoff === null) ? (
        problem === null && <Loading what="the probes" />
      ) : serving !== null ? (
        <Service view={view} serving={serving} />
      ) : (
        <Search view={view} tradeoff={tradeoff!} />
      )}
    </Page>
  );
}

function Search({ view, tradeoff }: { view: View; tradeoff: TradeoffDoc }): JSX.Element {
  const { summary } = view;
  const [budget, setBudget] = useState(() => fromAddress("budget", parseUsd, summary.budget_usd));
  const [deadline, setDeadline] = useState(() => fromAddress("deadline", parseDuration, summary.deadline_s));
  const goals = summary.kind === "scale" ? GOALS.scale : GOALS.any;
  const [goal, setGoal] = useState(() => goalOfAddress(goals, summary.goal));
  const words = limitWords(goal, budget, deadline);
  const asking = useWhatIf(summary.run, words);
  const changed = useAddress(words, limitWords(summary.goal, summary.budget_usd, summary.deadline_s));
  const ranges = {
    budget: tradeoff.ranges.budget ?? around([summary.budget_usd ?? summary.spent_usd], undefined),
    deadline: tradeoff.ranges.deadline ?? around([summary.deadline_s ?? summary.elapsed_s], undefined),
  };
  const label = asking.answer?.label ?? null;
  const series = functionsOf(view) === null ? view.path.map((step) => step.series) : [];
  const real = tradeoff.points.find((point) => point.chosen)?.label ?? summary.chosen;
  return (
    <div class="explore">
      <section class="card controls" aria-label="Limits">
        <Goals of={goals} goal={goal} onGoal={setGoal} />
        <Limit
          name="Budget"
          value={budget}
          range={ranges.budget}
          words={usd}
          parse={parseUsd}
          onChange={setBudget}
          was={summary.budget_usd}
          example="$120"
        />
        <Limit
          name="Deadline"
          value={deadline}
          range={ranges.deadline}
          words={duration}
          parse={parseDuration}
          onChange={setDeadline}
          was={summary.deadline_s}
          example="1d 4h"
        />
      </section>
      <section class="card decided" aria-label="Decision under these limits">
        <h2>Decision under these limits</h2>
        <Outcome
          view={view}
          real={real}
          asking={asking}
          onTake={(way) => {
            if (way.budget_usd !== null) setBudget(Math.ceil(way.budget_usd * 10_000) / 10_000);
            if (way.deadline_s !== null) setDeadline(Math.ceil(way.deadline_s));
          }}
        />
        {!asking.late && asking.answer?.not_certain && <p class="not-certain">{asking.answer.not_certain}</p>}
        {asking.answer !== null && !asking.late && <ContinueActions view={view} limits={changed} label={label} />}
        <Command words={["what-if", summary.run, ...optionsOf(changed)]} />
      </section>
      <div class="drawn">
        {tradeoff.points.length > 0 && (
          <section class="card">
            <Tradeoff
              tradeoff={tradeoff}
              budget={budget}
              deadline={deadline}
              chosen={label}
              series={series}
              onBudget={(value, digits) => setBudget(rounded(value, digits))}
              onDeadline={(value, digits) => setDeadline(rounded(value, digits))}
            />
          </section>
        )}
        {tradeoff.ranking.length > 0 && (
          <section class="card">
            <Ranking ranking={tradeoff.ranking} chosen={label} series={series} />
          </section>
        )}
        {tradeoff.points.length + tradeoff.ranking.length === 0 && (
          <section class="card">
            <p class="soft">There is no chart: nothing was measured yet. The decision still follows the limits.</p>
          </section>
        )}
      </div>
    </div>
  );
}

function Service({ view, serving }: { view: View; serving: Serving }): JSX.Element {
  const { summary } = view;
  const real = useMemo(() => capsOf(serving), [serving]);
  const figures = latencies(serving);
  const [caps, setCaps] = useState<Record<string, number | null>>(() =>
    Object.fromEntries(figures.map((figure) => [figure, fromAddress(option(figure), parseMs, real[figure] ?? null)])),
  );
  const [minRate, setMinRate] = useState(() => fromAddress("min_rps", parseRate, serving.min_rate));
  const [goal, setGoal] = useState(() => goalOfAddress(GOALS.serve, summary.goal));
  const set = Object.fromEntries(Object.entries(caps).filter((each): each is [string, number] => each[1] !== null));
  const words = capWords(goal, figures, caps, minRate);
  const asking = useWhatIf(summary.run, words);
  const changed = useAddress(words, capWords(summary.goal, figures, real, serving.min_rate));
  const rates = serving.trials.flatMap((trial) => (trial.rate === null ? [] : [trial.rate]));
  const chosen = serving.trials.find((trial) => trial.label === asking.answer?.label)?.number ?? null;
  return (
    <div class="explore">
      <section class="card controls" aria-label="Requirements">
        <Goals of={GOALS.serve} goal={goal} onGoal={setGoal} />
        {figures.map((figure) => (
          <Limit
            key={figure}
            name={`${figure.replace("_", " ")} latency`}
            value={caps[figure] ?? null}
            range={around(
              serving.trials.flatMap((trial) => latency(trial, figure) ?? []),
              real[figure],
            )}
            words={milliseconds}
            parse={parseMs}
            onChange={(value) => setCaps({ ...caps, [figure]: value })}
            was={real[figure] ?? null}
            example="30 ms"
          />
        ))}
        {rates.length > 0 && (
          <Limit
            name={`Minimum ${serving.unit}`}
            value={minRate}
            range={around(rates, serving.min_rate ?? undefined)}
            words={rate}
            parse={parseRate}
            onChange={setMinRate}
            was={serving.min_rate}
            example="200"
            needed={serving.min_rate !== null}
          />
        )}
      </section>
      <section class="card decided" aria-label="Decision under these limits">
        <h2>Decision under these limits</h2>
        <Outcome
          view={view}
          real={summary.chosen}
          asking={asking}
          onTake={(way) => {
            const eased = way.caps.flatMap(({ figure, at_most_s }): [string, number][] =>
              at_most_s === null ? [] : [[figure, Math.ceil(at_most_s * 1e6) / 1e3]],
            );
            if (eased.length > 0) setCaps({ ...caps, ...Object.fromEntries(eased) });
            if (way.min_rate !== null) setMinRate(Math.floor(way.min_rate * 1e3) / 1e3);
          }}
        />
        <Command words={["what-if", summary.run, ...optionsOf(changed)]} />
      </section>
      <section class="card drawn">
        <Latency serving={serving} caps={set} minRate={minRate} chosen={chosen} />
      </section>
    </div>
  );
}

/** In the words of `mlcd what-if`. */
function limitWords(goal: string, budget: number | null, deadline: number | null): Record<string, string> {
  return {
    goal,
    budget: budget === null ? "none" : String(budget),
    deadline: deadline === null ? "none" : durationWord(deadline),
  };
}

function capWords(
  goal: string,
  figures: string[],
  caps: Record<string, number | null>,
  minRate: number | null,
): Record<string, string> {
  const said = figures.map((figure) => [option(figure), caps[figure] == null ? "none" : `${caps[figure]}ms`]);
  return { goal, ...Object.fromEntries(said), ...(minRate === null ? {} : { min_rps: String(minRate) }) };
}

/** As the command line calls it: p95 is --latency-p95, ttft_p95 is itself. */
function option(figure: string): string {
  return figure.startsWith("p") ? `latency_${figure}` : figure.replaceAll("-", "_");
}

/** From half the least to twice the most that was measured. */
function around(values: number[], was: number | undefined): [number, number] {
  const all = [...values, ...(was === undefined ? [] : [was])].filter((value) => value > 0);
  return all.length === 0 ? [1, 1000] : [rounded(Math.min(...all) / 2), rounded(Math.max(...all) * 2)];
}

function Goals({ of, goal, onGoal }: { of: string[]; goal: string; onGoal: (goal: string) => void }): JSX.Element {
  return (
    <fieldset class="goals">
      <legend>Goal</legend>
      {of.map((each) => (
        <label key={each} class="tick">
          <input type="radio" name="goal" value={each} checked={goal === each} onChange={() => onGoal(each)} />
          {each}
        </label>
      ))}
    </fieldset>
  );
}
