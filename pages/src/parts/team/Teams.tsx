import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { line, send } from "../../api";
import { useGet } from "../../live";
import type { Budget } from "../../types";
import { Card } from "../Card";
import { Field } from "../Field";
import { claimWords, dollars, PerSelect, useWords } from "./Budget";

interface OfTeam extends Budget {
  name: string;
}

/** The budgets of teams. */
export function Teams(): JSX.Element {
  const { data, error, refresh } = useGet<{ teams: OfTeam[] }>("/teams");
  return (
    <Card title="Team budgets" note="The smaller of a member's and their team's remaining budget applies.">
      {error !== null && <p class="field-error">{error.message}</p>}
      {data?.teams.length === 0 && <p class="soft">No team yet: enter one when you add a member.</p>}
      <div class="teams">
        {data?.teams.map((team) => (
          <OneTeam key={team.name} team={team} onDone={refresh} />
        ))}
      </div>
    </Card>
  );
}

function OneTeam({ team, onDone }: { team: OfTeam; onDone: () => void }): JSX.Element {
  const before = team.budget_usd === null ? "" : String(team.budget_usd);
  const [written, setWritten] = useState(before);
  const [per, setPer] = useState(team.budget_per);
  const [error, setError] = useState<string | null>(null);
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    const budget_usd = dollars(written);
    if (budget_usd === undefined) {
      setError("expected dollars, such as $500");
      return;
    }
    try {
      await send("PUT", `/teams/${encodeURIComponent(team.name)}`, { budget_usd, budget_per: per });
      setError(null);
      onDone();
    } catch (refused) {
      setError(line(refused));
    }
  };
  return (
    <form class="team" onSubmit={(event) => void save(event)}>
      <Field label={team.name} error={error}>
        <input
          type="text"
          inputMode="decimal"
          placeholder="no limit"
          value={written}
          onInput={(event) => setWritten(event.currentTarget.value)}
        />
      </Field>
      <PerSelect aria-label={`Budget period of ${team.name}`} value={per} onChoose={setPer} />
      <button type="submit" class="button" disabled={written === before && per === team.budget_per}>
        Save
      </button>
      <p class="hint">{[useWords(team), claimWords(team)].filter(Boolean).join("; ")}</p>
    </form>
  );
}
