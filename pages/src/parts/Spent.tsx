import type { JSX } from "preact";
import { month, plural, usd } from "../format";
import type { Me, Spend } from "../types";
import { Bars } from "./Bars";
import { Card } from "./Card";

const MOST = 6;

/** Spending in real dollars: in total, by month, person and team. Without any, the simulated dollars, marked so. */
export function Spent({ spend, me }: { spend: Spend; me: Me }): JSX.Element {
  const real = spend.by_provenance.find((each) => each.name === "live");
  const others = spend.by_provenance.filter((each) => each.name !== "live" && each.runs > 0);
  const isReal = (real?.usd ?? 0) > 0;
  const shown = shownDollars(isReal);
  const months = [...spend.by_month].sort((a, b) => b.month.localeCompare(a.month)).slice(0, MOST);
  const people = top(spend.by_person.map(shown), "nobody");
  const teams = top(spend.by_team.map(shown), "no team");
  const mark = isReal ? "" : " (not real money)";
  return (
    <div class="spent">
      <Card title="Actual cost">
        <p class="sum">{usd(real?.usd ?? 0)}</p>
        <p class="note">
          in {plural(real?.runs ?? 0, "run")}
          {me.left_usd !== null && `; ${usd(me.left_usd)} of your budget left`}.
          {others.length > 0 && ` Not real money: ${others.map(unreal).join(", ")}.`}
        </p>
      </Card>
      <Card title={`By month${mark}`}>
        <Bars
          caption="Spent by month"
          of={months.map(shown).map((each) => ({ ...each, name: month(each.month), note: plural(each.runs, "run") }))}
        />
      </Card>
      {me.mode === "service" && people.length > 0 && (
        <Card title={`By person${mark}`}>
          <Bars caption="Spent by person" of={people} />
        </Card>
      )}
      {me.mode === "service" && teams.length > 1 && (
        <Card title={`By team${mark}`}>
          <Bars caption="Spent by team" of={teams} />
        </Card>
      )}
    </div>
  );
}

/** The real dollars of a share of the spending; all of its dollars if none of the whole are real. */
export function shownDollars(isReal: boolean): <T extends { usd: number; live_usd: number }>(share: T) => T {
  return (share) => (isReal ? { ...share, usd: share.live_usd } : share);
}

/** '$85.09 simulated in 3 runs'. */
function unreal({ name, usd: dollars, runs }: Spend["by_provenance"][number]): string {
  return `${usd(dollars)} ${name ?? ""} in ${plural(runs, "run")}`;
}

/** The largest few, and the sum of the others. */
function top(shares: Spend["by_person"], unnamed: string): { name: string; usd: number; note: string }[] {
  const sorted = [...shares].sort((a, b) => b.usd - a.usd);
  const few = sorted.slice(0, sorted.length > MOST ? MOST - 1 : MOST);
  const rest = sorted.slice(few.length);
  const shown = few.map((each) => ({ name: each.name ?? unnamed, usd: each.usd, note: plural(each.runs, "run") }));
  if (rest.length === 0) return shown;
  const sum = rest.reduce((total, each) => total + each.usd, 0);
  const runs = rest.reduce((total, each) => total + each.runs, 0);
  return [...shown, { name: `${rest.length} others`, usd: sum, note: plural(runs, "run") }];
}
