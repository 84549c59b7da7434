import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { line, send } from "../api";
import { moment } from "../format";
import { useGet } from "../live";
import { may, useMe } from "../parts/me";
import { NewReceiver } from "../parts/news/NewReceiver";
import { Empty, Loading, Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { Table, type Column } from "../parts/Table";
import { Token } from "../parts/team/Token";
import type { AddedReceiver, NewsAnswer, Receiver, TriedReceiver } from "../types";

const KINDS = { mail: "mail", json: "webhook", slack: "Slack" } as const;

/** The receivers of notifications: a member's own mail; for an admin also those of the service. */
export default function News(): JSX.Element {
  const me = useMe();
  const { data, error, refresh } = useGet<NewsAnswer>("/news");
  const [given, setGiven] = useState<AddedReceiver | null>(null);
  const [result, setResult] = useState<{ good: boolean; words: string } | null>(null);
  const act = async (work: () => Promise<string>): Promise<void> => {
    try {
      setResult({ good: true, words: await work() });
    } catch (why) {
      setResult({ good: false, words: line(why) });
    }
    refresh();
  };
  const test = (receiver: Receiver): void =>
    void act(async () => {
      const { trouble } = await send<TriedReceiver>("POST", `/news/${receiver.number}/test`, {});
      if (trouble) throw new Error(`The test message did not arrive: ${trouble}`);
      return `The test message to ${receiver.shown} was accepted.`;
    });
  const remove = (receiver: Receiver): void => {
    if (!confirm(`Stop sending news to ${receiver.shown}?`)) return;
    void act(async () => {
      await send("DELETE", `/news/${receiver.number}`);
      return `Removed: ${receiver.shown} gets no more news.`;
    });
  };
  const added = (made: AddedReceiver): void => {
    setGiven(made.secret ? made : null);
    setResult({ good: true, words: "Added. Send a test message to see whether it arrives." });
    refresh();
  };
  const admin = may(me, "admin");
  return (
    <Page
      title="News"
      lead="Notifications about runs, by mail or webhook. A message that cannot be delivered is sent again until it arrives."
    >
      {given !== null && (
        <Token what="secret" name="your webhook" token={given.secret} onDone={() => setGiven(null)} />
      )}
      {result !== null && <Notice tone={result.good ? "good" : "bad"}>{result.words}</Notice>}
      {error !== null && <Notice tone="bad">{error.message}</Notice>}
      {data === null && error === null && <Loading what="the receivers" />}
      {data !== null && data.receivers.length > 0 && (
        <Table
          caption="Receivers of news"
          columns={columns(test, remove)}
          rows={data.receivers}
          keyOf={(receiver) => receiver.number}
          rowClass={(receiver) => (receiver.trouble ? "not-ok" : "")}
        />
      )}
      {data !== null && data.receivers.length === 0 && (
        <Empty title="No receivers yet">
          {!data.mails && !admin && <p>This service sends no mail. Its operator can name a mail server.</p>}
        </Empty>
      )}
      {data !== null && (data.mails || admin) && (
        <div class="section">
          <NewReceiver mails={data.mails} events={data.events} admin={admin} onAdded={added} />
        </div>
      )}
    </Page>
  );
}

function whose({ owner, member, team }: Receiver): string {
  if (owner !== null) return "your runs";
  const parts = [member !== null && `runs of ${member}`, team !== null && `team ${team}`].filter(Boolean);
  return parts.join(", ") || "all runs";
}

function columns(test: (receiver: Receiver) => void, remove: (receiver: Receiver) => void): Column<Receiver>[] {
  const name = (receiver: Receiver): string => receiver.name || receiver.shown;
  return [
    {
      name: "to",
      head: "To",
      wrap: true,
      cell: (receiver) => (
        <>
          {name(receiver)}
          {receiver.name !== "" && <span class="under">{receiver.shown}</span>}
          <span class="under">
            {KINDS[receiver.kind]}, {whose(receiver)}
          </span>
          {receiver.trouble && (
            <span class="under phone">
              <Trouble of={receiver} />
            </span>
          )}
        </>
      ),
    },
    {
      name: "events",
      head: "Events",
      wrap: true,
      wide: true,
      cell: (receiver) => receiver.events?.map(spelled).join(", ") ?? "all",
    },
    {
      name: "trouble",
      head: "Problem",
      wrap: true,
      wide: true,
      cell: (receiver) => (receiver.trouble ? <Trouble of={receiver} /> : "none"),
    },
    {
      name: "acts",
      head: "Actions",
      num: true,
      cell: (receiver) => (
        <span class="row-acts">
          <button type="button" class="button small" aria-label={`Test: ${name(receiver)}`} onClick={() => test(receiver)}>
            Test
          </button>
          <button
            type="button"
            class="button small danger"
            aria-label={`Remove: ${name(receiver)}`}
            onClick={() => remove(receiver)}
          >
            Remove
          </button>
        </span>
      ),
    },
  ];
}

function Trouble({ of }: { of: Receiver }): JSX.Element {
  return (
    <>
      {of.trouble}
      {of.next_at !== null && `; next attempt at ${moment(of.next_at)}`}
    </>
  );
}

function spelled(event: string): string {
  return event.replace("_", " ");
}
