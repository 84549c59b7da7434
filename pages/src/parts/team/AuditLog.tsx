import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, line, withQuery } from "../../api";
import { moment } from "../../format";
import { useGet, useSettled } from "../../live";
import type { AuditEntry } from "../../types";
import { Notice } from "../Notice";
import { Table, type Column } from "../Table";
import { AuditFilters, type Chosen, NOTHING_CHOSEN } from "./AuditFilters";

const MOST = 50;
const KEYED_MS = 300;

interface Page {
  entries: AuditEntry[];
}

/** The audit log, newest entries first. */
export function AuditLog(): JSX.Element {
  const [chosen, setChosen] = useState(NOTHING_CHOSEN);
  const of = useSettled(chosen, KEYED_MS);
  return (
    <section class="section">
      <h2>Audit log</h2>
      <AuditFilters chosen={chosen} onChoose={setChosen} />
      <Entries key={withQuery("", { ...of })} of={of} />
    </section>
  );
}

function Entries({ of }: { of: Chosen }): JSX.Element {
  const first = useGet<Page>(withQuery("/audit", { ...of, limit: MOST }));
  const [older, setOlder] = useState<AuditEntry[]>([]);
  const [end, setEnd] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const shown = [...(first.data?.entries ?? []), ...older];
  const more = async (): Promise<void> => {
    try {
      const { entries } = await get<Page>(withQuery("/audit", { ...of, before: shown.at(-1)?.seq, limit: MOST }));
      setOlder([...older, ...entries]);
      setEnd(entries.length < MOST);
    } catch (refused) {
      setError(line(refused));
    }
  };
  const failed = error ?? first.error?.message;
  return (
    <>
      {failed !== undefined && <Notice tone="bad">{failed}</Notice>}
      {shown.length > 0 && (
        <Table
          caption="The audit log"
          columns={COLUMNS}
          rows={shown}
          keyOf={(entry) => entry.seq}
          rowClass={(entry) => (entry.outcome === "ok" ? "" : "not-ok")}
        />
      )}
      {shown.length >= MOST && !end && (
        <p class="note total">
          <button type="button" class="button small" onClick={() => void more()}>
            Show older
          </button>
        </p>
      )}
      {first.data !== null && shown.length === 0 && <p class="soft">No entry matches these filters.</p>}
    </>
  );
}

const COLUMNS: Column<AuditEntry>[] = [
  {
    name: "at",
    head: "When",
    cell: (entry) => (
      <time dateTime={entry.at} title={entry.at}>
        {moment(entry.at)}
      </time>
    ),
  },
  { name: "who", head: "Who", cell: (entry) => entry.who || "–" },
  {
    name: "action",
    head: "Action",
    cell: (entry) => (
      <>
        {entry.action}
        <span class="under phone">{entry.about}</span>
      </>
    ),
  },
  { name: "about", head: "Object", wide: true, cell: (entry) => entry.about || "–" },
  {
    name: "outcome",
    head: "Outcome",
    cell: (entry) => <span class={entry.outcome === "ok" ? "tone-quiet" : "tone-bad"}>{entry.outcome}</span>,
  },
  { name: "detail", head: "Detail", wrap: true, wide: true, cell: (entry) => <span class="soft">{entry.detail}</span> },
];
