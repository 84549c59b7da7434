import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { line, send } from "../api";
import { usd } from "../format";
import { useGet } from "../live";
import { Badge } from "../parts/Badge";
import { useMe } from "../parts/me";
import { Loading, Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { Link } from "../parts/router";
import { Table, type Column } from "../parts/Table";
import { AuditLog } from "../parts/team/AuditLog";
import { claimWords, useWords } from "../parts/team/Budget";
import { EditMember, NewMember } from "../parts/team/MemberForm";
import { Teams } from "../parts/team/Teams";
import { Token } from "../parts/team/Token";
import type { Member } from "../types";

/** Members, roles, budgets and the audit log. For admins. */
export default function Team(): JSX.Element {
  const me = useMe();
  const members = useGet<{ members: Member[] }>("/members");
  const [given, setGiven] = useState<{ name: string; token: string } | null>(null);
  const [editing, setEditing] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [turn, setTurn] = useState(0);
  const changed = (): void => {
    setEditing(null);
    setError(null);
    members.refresh();
    setTurn(turn + 1);
  };
  const added = (name: string, token: string): void => {
    setGiven({ name, token });
    changed();
  };
  const act = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
      changed();
    } catch (refused) {
      setError(line(refused));
    }
  };
  const renew = (name: string): void => {
    if (!confirm(`Give ${name} a new token? The old one stops working at once.`)) return;
    void act(async () =>
      setGiven({ name, ...(await send<{ token: string }>("POST", `/members/${encodeURIComponent(name)}/token`)) }),
    );
  };
  const remove = (name: string): void => {
    if (!confirm(`Remove ${name}? Their runs stay; their token stops working at once.`)) return;
    void act(() => send("DELETE", `/members/${encodeURIComponent(name)}`));
  };
  const all = members.data?.members ?? [];
  const teams = [...new Set(all.flatMap(({ team }) => (team === null ? [] : [team])))];
  return (
    <Page
      title="Team"
      lead="A budget covers all runs of a member, in total or per month. An active run counts with its whole remaining budget."
    >
      {given !== null && <Token name={given.name} token={given.token} onDone={() => setGiven(null)} />}
      {(error ?? members.error?.message) && <Notice tone="bad">{error ?? members.error?.message}</Notice>}
      {members.data === null && members.error === null && <Loading what="the members" />}
      {all.length > 0 && (
        <Table
          caption="Members"
          columns={columns(me.name, editing, { edit: setEditing, renew, remove, changed })}
          rows={all}
          keyOf={(member) => member.name}
        />
      )}
      <div class="columns section">
        <NewMember teams={teams} onAdded={added} />
        <Teams key={turn} />
      </div>
      <p class="section">
        <Link to="/news">News</Link>: notify the team about its runs by mail, webhook or Slack.
      </p>
      <AuditLog key={turn} />
    </Page>
  );
}

interface Acts {
  edit: (name: string | null) => void;
  renew: (name: string) => void;
  remove: (name: string) => void;
  changed: () => void;
}

function columns(myself: string | null, editing: string | null, acts: Acts): Column<Member>[] {
  return [
    {
      name: "name",
      head: "Name",
      cell: (member) => (
        <>
          {member.name}
          {member.name === myself && <span class="under">you</span>}
          <span class="under phone">{member.role}</span>
        </>
      ),
    },
    {
      name: "role",
      head: "Role",
      wide: true,
      cell: (member) => <Badge tone={member.role === "admin" ? "accent" : "plain"}>{member.role}</Badge>,
    },
    { name: "team", head: "Team", wide: true, cell: (member) => member.team ?? "–" },
    {
      name: "budget",
      head: "Spent of budget",
      num: true,
      cell: (member) => (
        <>
          {useWords(member)}
          <span class="under">{claimWords(member)}</span>
          {member.left_usd !== null && <span class="under">{usd(member.left_usd)} left</span>}
        </>
      ),
    },
    {
      name: "acts",
      head: "Actions",
      num: true,
      cell: (member) =>
        editing === member.name ? (
          <EditMember member={member} onDone={acts.changed} onLeave={() => acts.edit(null)} />
        ) : (
          <span class="row-acts">
            <Act words="Change" about={member.name} onClick={() => acts.edit(member.name)} />
            <Act words="New token" about={member.name} onClick={() => acts.renew(member.name)} />
            {member.name !== myself && (
              <Act words="Remove" about={member.name} danger onClick={() => acts.remove(member.name)} />
            )}
          </span>
        ),
    },
  ];
}

function Act({
  words,
  about,
  danger = false,
  onClick,
}: {
  words: string;
  about: string;
  danger?: boolean;
  onClick: () => void;
}): JSX.Element {
  return (
    <button
      type="button"
      class={danger ? "button small danger" : "button small"}
      aria-label={`${words}: ${about}`}
      onClick={onClick}
    >
      {words}
    </button>
  );
}
