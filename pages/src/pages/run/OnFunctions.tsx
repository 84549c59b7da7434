/** A run on functions: its plan and other plans, time and cost of an epoch, and progress. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { Boundary } from "../../charts/Boundary";
import { doneOf, Epochs } from "../../charts/Epochs";
import { Parallel } from "../../charts/Parallel";
import { Spend } from "../../charts/Spend";
import { allocation, type Reading, Stages } from "../../charts/Stages";
import { duration, percent, significant, usd, whole } from "../../format";
import { inReport } from "../../parts/report";
import type { Functions, Plan, View } from "../../types";

export function OnFunctions({ view, functions }: { view: View; functions: Functions }): JSX.Element {
  const { boundary } = functions;
  const plans = useMemo(() => inOrder(functions.decision?.plans ?? []), [functions]);
  const tunes = functions.phase === "tuning";
  return (
    <>
      {plans.length > 0 && (
        <section class="card">
          {tunes &&
            (plans[0]?.stages.length ?? 0) > 1 &&
            readings().map((first) => <Stages key={first} plans={plans} first={first} />)}
          <h2 class="plans-title">The plans side by side</h2>
          <Plans plans={plans} />
        </section>
      )}
      <div class="charts">
        {tunes && <Losses functions={functions} />}
        {boundary.length > 1 && (
          <section class="card">
            <Boundary boundary={boundary} />
          </section>
        )}
        <section class="card">
          <Spend spend={view.spend} />
        </section>
      </div>
    </>
  );
}

/** The answer as a chart: of training, how the loss fell; of tuning, what was drawn for each trial and how it did. */
export function Outcome({ functions }: { functions: Functions }): JSX.Element | null {
  if (functions.phase === "training") return <Losses functions={functions} />;
  if (functions.trials.length === 0 || functions.tuning === null) return null;
  return (
    <section class="card">
      <Parallel trials={functions.trials} space={functions.tuning.space} />
    </section>
  );
}

function Losses({ functions }: { functions: Functions }): JSX.Element | null {
  const done = useMemo(() => doneOf(functions), [functions]);
  const chosen = functions.decision?.plans.find((plan) => plan.chosen);
  if (done.every((each) => each.loss === null)) return null;
  return (
    <section class="card">
      <Epochs done={done} planned={planned(functions, chosen)} target={functions.target?.value ?? null} />
    </section>
  );
}

/** On paper nothing can be switched: both what a trial costs and when a stage ends are drawn. */
function readings(): Reading[] {
  return inReport() ? ["trial", "time"] : ["trial"];
}

const FIRST = ["exact", "greedy", "fixed"];

/** Ours and the even split first, then those of other systems. */
function inOrder(plans: Plan[]): Plan[] {
  const place = (plan: Plan): number => (FIRST.indexOf(plan.method) + FIRST.length + 1) % (FIRST.length + 1);
  return [...plans].sort((a, b) => place(a) - place(b));
}

/** Stages, or epochs, that the plan has. */
function planned({ phase }: Functions, chosen: Plan | undefined): number | null {
  if (!chosen) return null;
  return phase === "tuning" ? chosen.stages.length : Math.round(chosen.stages.reduce((sum, stage) => sum + stage.epochs, 0));
}

/** Comparison of plans: a row for each stage, a column for each plan, and what it all comes to. */
export function Plans({ plans }: { plans: Plan[] }): JSX.Element {
  const even = plans.find((plan) => plan.method === "fixed");
  const stages = plans[0]!.stages;
  return (
    <div class="scroll plans" tabIndex={0} role="region" aria-label="Comparison of plans">
      <table>
        <caption>Comparison of plans</caption>
        <thead>
          <tr>
            <th scope="col">stage</th>
            {plans.map((plan) => (
              <th key={plan.name} scope="col" class={plan.chosen ? "picked" : undefined}>
                {plan.name}
                {plan.chosen && <small> chosen</small>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {stages.map((stage, i) => (
            <tr key={i}>
              <th scope="row">
                {stages.length > 1 ? i + 1 : "all"}
                <span class="under">
                  {stage.trials > 1 && `${whole(stage.trials)} trials, `}
                  {whole(stage.epochs)} epochs
                </span>
              </th>
              {plans.map((plan) => (
                <td key={plan.name} class={plan.chosen ? "picked" : undefined}>
                  {plan.stages[i] ? allocation(plan.stages[i]!) : "–"}
                  {plan.stages[i] && (
                    <span class="under">{`${duration(plan.stages[i]!.seconds)}, ${usd(plan.stages[i]!.usd)}`}</span>
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">
              total
              {even && <span class="under">relative to an even split</span>}
            </th>
            {plans.map((plan) => (
              <td key={plan.name} class={plan.chosen ? "picked" : undefined}>
                {`${duration(plan.seconds)}, ${usd(plan.usd)}`}
                {even && plan !== even && <span class="under">{against(plan, even)}</span>}
              </td>
            ))}
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

/** '12 % faster, 3 % dearer'. */
function against(plan: Plan, even: Plan): string {
  const time = plan.seconds / even.seconds - 1;
  const cost = plan.usd / even.usd - 1;
  const said = [share(time, "slower", "faster"), share(cost, "more expensive", "cheaper")].filter(Boolean);
  return said.join(", ") || "the same";
}

function share(change: number, more: string, less: string): string {
  if (Math.abs(change) < 0.005) return "";
  return change >= 1
    ? `${significant(1 + change, 2)} times ${more === "slower" ? "the time" : "the cost"}`
    : `${percent(Math.abs(change))} ${change > 0 ? more : less}`;
}
