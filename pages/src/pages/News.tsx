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

/** Where news of runs goes: a member's own mail; for an admin also what is set up for the service. */
export default function News(): JSX.Element {
  const me = useMe();
  const { data, error, refresh } = useGet<NewsAnswer>("/news");
  const [given, setGiven] = useState<AddedReceiver | null>(null);
  const [told, setTold] = useState<{ good: boolean; words: string } | null>(null);
  const act = async (work: () => Promise<string>): Promise<void> => {
    try {
      setTold({ good: true, words: await work() });
    } catch (why) {
      setTold({ good: false, words: line(why) });
    }
    refresh();
  };
  const test = (receiver: Receiver): void =>
    void act(async () => {
      const { trouble } = await send<TriedReceiver>("POST", `/news/${receiver.number}/test`, {});
      if (trouble) throw new Error(`The test did not arrive: ${trouble}`);
      return `The test for ${receiver.shown} was taken.`;
    });
  const remove = (receiver: Receiver): void => {
    if (!confirm(`Send no more news to ${receiver.shown}?`)) return;
    void act(async () => {
      await send("DELETE", `/news/${receiver.number}`);
      return `No more news goes to ${receiver.shown}.`;
    });
  };
  const added = (made: AddedReceiver): void => {
    setGiven(made.secret ? made : null);
    setTold({ good: true, words: "Added. Send a test to see that news arrives." });
    refresh();
  };
  const admin = may(me, "admin");
  return (
    <Page
      title="News"
      lead="What happens to runs, sent to you. Each message is sent again until it has arrived."
    >
      {given !== null && (
        <Token what="secret" name="your webhook" token={given.secret} onDone={() => setGiven(null)} />
      )}
      {told !== null && <Notice tone={told.good ? "good" : "bad"}>{told.words}</Notice>}
      {error !== null && <Notice tone="bad">{error.message}</Notice>}
      {data === null && error === null && <Loading what="where news goes" />}
      {data !== null && data.receivers.length > 0 && (
        <Table
          caption="Where news goes"
          columns={columns(test, remove)}
          rows={data.receivers}
          keyOf={(receiver) => receiver.number}
          rowClass={(receiver) => (receiver.trouble ? "not-ok" : "")}
        />
      )}
      {data !== null && data.receivers.length === 0 && (
        <Empty title="News goes nowhere yet.">
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
      head: "Trouble",
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
      {of.next_at !== null && `; next try at ${moment(of.next_at)}`}
    </>
  );
}

function spelled(event: string): string {
  return event.replace("_", " ");
}
