/** The charts of a training search: time against cost, which is the answer; then its path and its spending. */

import type { JSX } from "preact";
import { CROWD } from "../../charts/failedProbes";
import { Ranking } from "../../charts/Ranking";
import { SearchPath } from "../../charts/SearchPath";
import { Spend } from "../../charts/Spend";
import { Tradeoff } from "../../charts/Tradeoff";
import { type Finish, refusalsOf, type Tradeoff as TradeoffDoc, type View } from "../../types";
import { OtherLimits } from "./OtherLimits";

interface Props {
  view: View;
  tradeoff: TradeoffDoc | null;
}

export function TimeAgainstCost({ view, tradeoff }: Props): JSX.Element | null {
  const { run, chosen } = view.summary;
  const series = view.path.map((step) => step.series);
  if (tradeoff === null) return null;
  return (
    <>
      {tradeoff.ranking.length > 0 && (
        <section class="card">
          <Ranking ranking={tradeoff.ranking} chosen={chosen} series={series} />
        </section>
      )}
      {tradeoff.points.length > 0 && (
        <section class="card">
          <Tradeoff
            tradeoff={tradeoff}
            budget={tradeoff.budget_usd}
            deadline={tradeoff.deadline_s}
            chosen={chosen}
            series={series}
          />
          <OtherLimits run={run} tries="probes" />
        </section>
      )}
    </>
  );
}

export function Searched({ view }: { view: View }): JSX.Element | null {
  if (view.path.length === 0) return null;
  const size = view.path.length > CROWD ? "card wide" : "card";
  return (
    <div class="charts">
      <section class={size}>
        <SearchPath
          path={view.path}
          refusals={refusalsOf(view)}
          underWay={view.under_way}
          driven={view.summary.driven}
          unit="samples/s"
        />
      </section>
      <section class={size}>
        <Spend spend={view.spend} ahead={ahead(view)} />
      </section>
    </div>
  );
}

/** What is still to come of a decided run. */
export function ahead(view: View): Finish | null {
  if (
    !["decided", "running"].includes(view.summary.status) ||
    view.spend.points.some((point) => point.purpose === "run")
  )
    return null;
  return view.path.find((step) => step.chosen)?.finish ?? null;
}
