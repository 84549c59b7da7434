import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { line, send } from "../api";
import { day, moment } from "../format";
import { useGet } from "../live";
import { Badge } from "../parts/Badge";
import { Card } from "../parts/Card";
import { Field } from "../parts/Field";
import { Loading, Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { Table, type Column } from "../parts/Table";
import { Token } from "../parts/team/Token";
import type { MadeToken, MyTokens, TokenState } from "../types";

const SCOPES = { read: "can see runs", run: "can also start and end runs" } as const;
type Scope = keyof typeof SCOPES;

/** A member's own tokens, for programs. */
export default function Tokens(): JSX.Element {
  const { data, error, refresh } = useGet<MyTokens>("/tokens");
  const [given, setGiven] = useState<MadeToken | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const made = (token: MadeToken | null): void => {
    setGiven(token);
    setRefused(null);
    refresh();
  };
  const act = async (work: () => Promise<MadeToken | void>): Promise<void> => {
    try {
      made((await work()) ?? null);
    } catch (why) {
      setRefused(line(why));
    }
  };
  const path = (name: string): string => `/tokens/${encodeURIComponent(name)}`;
  const rotate = (name: string): void => {
    if (!confirm(`Give ${name} a new secret? The old one stops working at once.`)) return;
    void act(() => send<MadeToken>("POST", `${path(name)}/rotate`));
  };
  const revoke = (name: string): void => {
    if (!confirm(`Revoke ${name}? What uses it stops working at once.`)) return;
    void act(() => send("DELETE", path(name)));
  };
  return (
    <Page
      title="Your tokens"
      lead="For CI, scripts and monitoring. A token can never do more than you can, and cannot make or end other tokens."
    >
      {given !== null && <Token name={given.name} token={given.token} onDone={() => setGiven(null)} />}
      {(refused ?? error?.message) && <Notice tone="bad">{refused ?? error?.message}</Notice>}
      {data === null && error === null && <Loading what="your tokens" />}
      {data !== null && data.tokens.length > 0 && (
        <Table
          caption="Your tokens"
          columns={columns(rotate, revoke)}
          rows={data.tokens}
          keyOf={(token) => token.name}
          rowClass={(token) => (token.expired ? "not-ok" : "")}
        />
      )}
      <div class="section">
        <NewToken onMade={made} />
      </div>
    </Page>
  );
}

function NewToken({ onMade }: { onMade: (token: MadeToken) => void }): JSX.Element {
  const [name, setName] = useState("");
  const [scope, setScope] = useState<Scope>("read");
  const [days, setDays] = useState("90");
  const [error, setError] = useState<string | null>(null);
  const make = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      const body = { name: name.trim(), scope, days: days.trim() === "" ? null : Number(days) };
      onMade(await send<MadeToken>("POST", "/tokens", body));
      setName("");
      setError(null);
    } catch (refused) {
      setError(line(refused));
    }
  };
  return (
    <Card title="Make a token">
      <form class="member" onSubmit={(event) => void make(event)}>
        <div class="fields">
          <Field label="Name" hint="such as ci" error={error}>
            <input
              type="text"
              required
              autocomplete="off"
              spellcheck={false}
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
            />
          </Field>
          <Field label="Scope">
            <select value={scope} onChange={(event) => setScope(event.currentTarget.value as Scope)}>
              {Object.entries(SCOPES).map(([each, words]) => (
                <option key={each} value={each}>
                  {each}: {words}
                </option>
              ))}
            </select>
          </Field>
          <Field label="Days" hint="empty: until it is revoked">
            <input
              type="number"
              min={1}
              max={3650}
              value={days}
              onInput={(event) => setDays(event.currentTarget.value)}
            />
          </Field>
        </div>
        <button type="submit" class="button primary" disabled={name.trim() === ""}>
          Make
        </button>
      </form>
    </Card>
  );
}

function columns(rotate: (name: string) => void, revoke: (name: string) => void): Column<TokenState>[] {
  return [
    {
      name: "name",
      head: "Name",
      cell: (token) => (
        <>
          {token.name}
          <span class="under phone">{token.scope}</span>
        </>
      ),
    },
    { name: "scope", head: "Scope", wide: true, cell: (token) => <Badge tone="plain">{token.scope}</Badge> },
    { name: "made", head: "Made", wide: true, cell: (token) => day(token.created_at ?? "") },
    { name: "ends", head: "Ends", cell: (token) => (token.expired ? "expired" : token.expires_at ? day(token.expires_at) : "never") },
    { name: "used", head: "Last used", cell: (token) => (token.used_at ? moment(token.used_at) : "never") },
    {
      name: "acts",
      head: "Actions",
      num: true,
      cell: (token) => (
        <span class="row-acts">
          <button type="button" class="button small" aria-label={`Rotate: ${token.name}`} onClick={() => rotate(token.name)}>
            Rotate
          </button>
          <button
            type="button"
            class="button small danger"
            aria-label={`Revoke: ${token.name}`}
            onClick={() => revoke(token.name)}
          >
            Revoke
          </button>
        </span>
      ),
    },
  ];
}
