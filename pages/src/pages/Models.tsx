import type { JSX } from "preact";
import { bytes, count, moment, percent, plural, significant, whole } from "../format";
import { useGet } from "../live";
import { Provenance } from "../parts/Badge";
import { Empty, Loading, Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { Link, toRun } from "../parts/router";
import { Table, type Column } from "../parts/Table";
import type { KnowledgeBase, Learned, LearnedModel, SeenModel } from "../types";

/** What earlier runs have learned, and knowledge bases of measured models. */
export default function Models(): JSX.Element {
  return (
    <Page title="Models" lead="What MLCD has learned. Later searches start from it and need fewer probes.">
      <LearnedModels />
      <Seen />
    </Page>
  );
}

function LearnedModels(): JSX.Element {
  const { data, error } = useGet<Learned>("/models");
  return (
    <section>
      <h2>Learned by elastic runs</h2>
      {error !== null && <Notice tone="bad">{error.message}</Notice>}
      {data === null && error === null && <Loading what="the models" />}
      {data?.unreadable.map((each) => (
        <Notice key={each.name} tone="caution">
          {each.because}
        </Notice>
      ))}
      {data !== null && data.models.length > 0 && (
        <div class="fit">
          <Table
            caption="Models learned by elastic runs"
            columns={LEARNED}
            rows={data.models}
            keyOf={(model) => model.name}
          />
        </div>
      )}
      {data !== null && data.models.length === 0 && (
        <Empty title="No model yet">
          <p>
            A run of <code>mlcd scale</code> creates one. <Link to="/submit">Submit one</Link>.
          </p>
        </Empty>
      )}
    </section>
  );
}

function target(of: LearnedModel["target"]): string {
  return of === null ? "–" : `${of.metric} ${of.at_least ? "≥" : "≤"} ${significant(of.value, 6)}`;
}

const LEARNED: Column<LearnedModel>[] = [
  {
    name: "name",
    head: "Model",
    cell: (model) => (
      <>
        {model.identity.fingerprint.architecture || model.identity.job}
        <span class="under">{model.name}</span>
      </>
    ),
  },
  {
    name: "job",
    head: "Data and optimiser",
    wide: true,
    cell: (model) => (
      <>
        {model.identity.fingerprint.data || "–"}
        {model.identity.fingerprint.optimizer && <span class="under">{model.identity.fingerprint.optimizer}</span>}
      </>
    ),
  },
  {
    name: "size",
    head: "Parameters",
    num: true,
    wide: true,
    cell: (model) => (model.identity.parameters ? count(model.identity.parameters) : "–"),
  },
  {
    name: "machines",
    head: "Machines",
    wide: true,
    cell: (model) => (
      <>
        {model.machines.map((machine) => machine.instance_type).join(", ")}
        <span class="under">
          {range(model.nodes)} nodes, batch {range(model.batches)}
        </span>
      </>
    ),
  },
  {
    name: "target",
    head: "Target",
    wide: true,
    cell: (model) => (
      <>
        {target(model.target)}
        <span class="under">{model.epochs === null ? "not reached" : `after ${significant(model.epochs)} epochs`}</span>
      </>
    ),
  },
  {
    name: "run",
    head: "Learned",
    cell: (model) => (
      <>
        <Link to={toRun(model.run)}>{model.run}</Link> <Provenance of={model.provenance} />
        <span class="under">{moment(model.saved_at)}</span>
      </>
    ),
  },
];

function range(of: number[]): string {
  if (of.length === 0) return "–";
  const [low, high] = [Math.min(...of), Math.max(...of)];
  return low === high ? whole(low) : `${whole(low)}..${whole(high)}`;
}

function Seen(): JSX.Element {
  const { data, error } = useGet<{ knowledge: KnowledgeBase[] }>("/knowledge");
  return (
    <section>
      <h2>Knowledge bases for serving</h2>
      {error !== null && <Notice tone="bad">{error.message}</Notice>}
      {data === null && error === null && <Loading what="the knowledge bases" />}
      {data?.knowledge.map((base) => (
        <details key={base.name} class="base fit">
          <summary>
            <b>{base.name}</b> {plural(base.models.length, "model")},{" "}
            {plural(sum(base.models.map(({ cells }) => cells)), "measured configuration")}
            <span class="under">{base.source}</span>
          </summary>
          <Table caption={`Models of ${base.name}`} columns={SEEN} rows={base.models} keyOf={(model) => model.name} />
        </details>
      ))}
    </section>
  );
}

function sum(of: number[]): number {
  return of.reduce((total, each) => total + each, 0);
}

const SEEN: Column<SeenModel>[] = [
  {
    name: "name",
    head: "Model",
    cell: (model) => (
      <>
        {model.name}
        <span class="under">{model.family}</span>
      </>
    ),
  },
  {
    name: "parameters",
    head: "Parameters",
    num: true,
    wide: true,
    cell: (model) => (model.parameters ? count(model.parameters * 1e9) : "–"),
  },
  {
    name: "weights",
    head: "Weights",
    num: true,
    wide: true,
    cell: (model) => (model.weights_mb ? bytes(model.weights_mb * 2 ** 20) : "–"),
  },
  { name: "cells", head: "Configurations", num: true, wide: true, cell: (model) => whole(model.cells) },
  { name: "operators", head: "Share of time by operator", cell: (model) => <Operators of={model.operators} /> },
];

const NAMED = 3;

/** Shares of the time as one strip, the largest few by name. */
function Operators({ of }: { of: Record<string, number> }): JSX.Element {
  const shares = Object.entries(of).map(([kind, share]) => [kind.replace(/^aten::/, ""), share] as const);
  if (shares.length === 0) return <span class="soft">not measured</span>;
  return (
    <span class="operators">
      <span class="strip" aria-hidden="true">
        {shares.slice(0, 8).map(([kind, share], index) => (
          <i
            key={kind}
            style={{ width: `${100 * share}%`, background: `var(--c${index})` }}
            title={`${kind} ${percent(share)}`}
          />
        ))}
      </span>
      <span class="under">
        {shares
          .slice(0, NAMED)
          .map(([kind, share]) => `${kind} ${percent(share)}`)
          .join(", ")}
      </span>
    </span>
  );
}
