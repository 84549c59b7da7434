import type { JSX } from "preact";
import { duration, moment, plural } from "../format";
import { useEvery, useGet } from "../live";
import { Badge } from "../parts/Badge";
import { Loading, Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { Link, toRun } from "../parts/router";
import { Table, type Column } from "../parts/Table";
import type { QueuedRun, WorkerState, WorkersAnswer } from "../types";

const LOOK_AGAIN_MS = 3_000;

/** The workers, the runs that they drive, and the queue. */
export default function Workers(): JSX.Element {
  const { data, error, refresh } = useGet<WorkersAnswer>("/workers");
  useEvery(refresh, LOOK_AGAIN_MS);
  return (
    <Page
      title="Workers"
      lead="The workers, the runs that they drive, and the queue. If a worker sends no heartbeat for ten seconds, another one takes over its runs."
    >
      {error !== null && <Notice tone="bad">{error.message}</Notice>}
      {data === null && error === null && <Loading what="the workers" />}
      {data !== null && data.trouble !== "" && <Notice tone="bad">{data.trouble}</Notice>}
      {data !== null && data.workers.length > 0 && (
        <Table caption="Workers" columns={WORKERS} rows={data.workers} keyOf={(worker) => worker.number} />
      )}
      {data !== null && (
        <section class="section">
          <h2>Queue</h2>
          {data.waiting.length === 0 ? (
            <p class="soft">The queue is empty.</p>
          ) : (
            <>
              <Table caption="The queue" columns={QUEUE} rows={data.waiting} keyOf={(each) => each.place} />
              <p class="note total">
                {plural(data.waiting.length, "run")} in the queue. The order changes as runs end: members with the fewest
                active runs come first.
              </p>
            </>
          )}
        </section>
      )}
    </Page>
  );
}

function When({ at }: { at: string | null }): JSX.Element {
  if (at === null) return <>–</>;
  return (
    <time dateTime={at} title={at}>
      {moment(at)}
    </time>
  );
}

const WORKERS: Column<WorkerState>[] = [
  {
    name: "worker",
    head: "Worker",
    cell: (worker) => (
      <>
        {worker.host || `worker ${worker.number}`}
        {worker.process !== null && <span class="under">process {worker.process}</span>}
      </>
    ),
  },
  {
    name: "state",
    head: "Last heartbeat",
    cell: (worker) => (
      <>
        <Badge tone={worker.alive ? "good" : "bad"}>{worker.alive ? "alive" : "silent"}</Badge>
        <span class="under">{duration(worker.silent_s)} ago</span>
      </>
    ),
  },
  {
    name: "runs",
    head: "Runs",
    wrap: true,
    cell: (worker) =>
      worker.runs.length === 0 ? (
        <span class="soft">nothing</span>
      ) : (
        <ul class="plain">
          {worker.runs.map(({ run, member, since, errand }) => (
            <li key={run}>
              <Link to={toRun(run)}>{run}</Link>
              <span class="under">
                {errand === "take down" && "takes it down, "}
                {member !== null && `${member}, `}since <When at={since} />
              </span>
            </li>
          ))}
        </ul>
      ),
  },
  {
    name: "slots",
    head: "Slots in use",
    num: true,
    wide: true,
    cell: (worker) => (worker.slots === null ? worker.runs.length : `${worker.runs.length} of ${worker.slots}`),
  },
  { name: "since", head: "Started", wide: true, cell: (worker) => <When at={worker.since} /> },
  { name: "version", head: "Version", wide: true, cell: (worker) => worker.version || "–" },
];

const QUEUE: Column<QueuedRun>[] = [
  { name: "place", head: "Position", cell: (each) => each.place },
  {
    name: "run",
    head: "Run",
    wrap: true,
    cell: (each) => (
      <>
        <Link to={toRun(each.run)}>{each.run}</Link>
        {each.member !== null && <span class="under phone">{each.member}</span>}
      </>
    ),
  },
  { name: "member", head: "Member", wide: true, cell: (each) => each.member ?? "–" },
  {
    name: "since",
    head: "Waiting since",
    cell: (each) => (
      <>
        <When at={each.since} />
        {each.not_before !== null && (
          <span class="under">
            again at <When at={each.not_before} />
          </span>
        )}
      </>
    ),
  },
];
