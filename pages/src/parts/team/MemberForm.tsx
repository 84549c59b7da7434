import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { line, send } from "../../api";
import type { Member, Per, Role } from "../../types";
import { Card } from "../Card";
import { Field } from "../Field";
import { dollars, PerSelect } from "./Budget";

const ROLES: Record<Role, string> = { viewer: "can see runs", runner: "can also submit runs", admin: "can also manage the team" };

export function NewMember({
  teams,
  onAdded,
}: {
  teams: string[];
  onAdded: (name: string, token: string) => void;
}): JSX.Element {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("runner");
  const [team, setTeam] = useState("");
  const [budget, setBudget] = useState("");
  const [per, setPer] = useState<Per>("total");
  const [error, setError] = useState<{ about: "name" | "budget"; words: string } | null>(null);
  const add = async (event: Event): Promise<void> => {
    event.preventDefault();
    const budget_usd = dollars(budget);
    if (budget_usd === undefined) {
      setError({ about: "budget", words: "expected dollars, such as $50" });
      return;
    }
    try {
      const body = { name: name.trim(), role, team: team.trim() || null, budget_usd, budget_per: per };
      const { token } = await send<{ token: string }>("POST", "/members", body);
      onAdded(body.name, token);
      setName("");
      setError(null);
    } catch (refused) {
      setError({ about: "name", words: line(refused) });
    }
  };
  return (
    <Card title="Add a member">
      <form class="member" onSubmit={(event) => void add(event)}>
        <div class="fields">
          <Field label="Name" error={error?.about === "name" ? error.words : null}>
            <input
              type="text"
              required
              autocomplete="off"
              spellcheck={false}
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
            />
          </Field>
          <Field label="Role">
            <RoleSelect value={role} onChoose={setRole} />
          </Field>
          <Field label="Team" hint="empty: no team">
            <input
              type="text"
              list="teams"
              autocomplete="off"
              value={team}
              onInput={(event) => setTeam(event.currentTarget.value)}
            />
          </Field>
          <Field label="Budget" hint="empty: no limit" error={error?.about === "budget" ? error.words : null}>
            <input
              type="text"
              inputMode="decimal"
              placeholder="$50"
              value={budget}
              onInput={(event) => setBudget(event.currentTarget.value)}
            />
          </Field>
          <Field label="Budget period">
            <PerSelect value={per} onChoose={setPer} />
          </Field>
        </div>
        <datalist id="teams">
          {teams.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
        <button type="submit" class="button primary" disabled={name.trim() === ""}>
          Add
        </button>
      </form>
    </Card>
  );
}

interface RoleSelectProps {
  value: Role;
  onChoose: (role: Role) => void;
  [more: string]: unknown;
}

function RoleSelect({ value, onChoose, ...rest }: RoleSelectProps): JSX.Element {
  return (
    <select {...rest} value={value} onChange={(event) => onChoose(event.currentTarget.value as Role)}>
      {Object.entries(ROLES).map(([role, words]) => (
        <option key={role} value={role}>
          {role}: {words}
        </option>
      ))}
    </select>
  );
}

/** In a member's row: role, team, budget. */
export function EditMember({
  member,
  onDone,
  onLeave,
}: {
  member: Member;
  onDone: () => void;
  onLeave: () => void;
}): JSX.Element {
  const [role, setRole] = useState(member.role);
  const [team, setTeam] = useState(member.team ?? "");
  const [budget, setBudget] = useState(member.budget_usd === null ? "" : String(member.budget_usd));
  const [per, setPer] = useState(member.budget_per);
  const [error, setError] = useState<string | null>(null);
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    const budget_usd = dollars(budget);
    if (budget_usd === undefined) {
      setError("budget: expected dollars, such as $50");
      return;
    }
    try {
      await send("PATCH", `/members/${encodeURIComponent(member.name)}`, {
        role,
        team: team.trim() || null,
        budget_usd,
        budget_per: per,
      });
      onDone();
    } catch (refused) {
      setError(line(refused));
    }
  };
  return (
    <form class="edit-member" onSubmit={(event) => void save(event)}>
      <RoleSelect aria-label={`Role of ${member.name}`} value={role} onChoose={setRole} />
      <input
        type="text"
        aria-label={`Team of ${member.name}`}
        placeholder="no team"
        value={team}
        onInput={(event) => setTeam(event.currentTarget.value)}
      />
      <input
        type="text"
        aria-label={`Budget of ${member.name}`}
        placeholder="no limit"
        inputMode="decimal"
        value={budget}
        onInput={(event) => setBudget(event.currentTarget.value)}
      />
      <PerSelect aria-label={`Budget period of ${member.name}`} value={per} onChoose={setPer} />
      <button type="submit" class="button small primary">
        Save
      </button>
      <button type="button" class="button small" onClick={onLeave}>
        Cancel
      </button>
      {error !== null && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
    </form>
  );
}
