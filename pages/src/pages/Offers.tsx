import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { withQuery } from "../api";
import { rate, significant, whole } from "../format";
import { useGet, useSettled } from "../live";
import { Chips } from "../parts/Field";
import { Empty, Loading, Notice } from "../parts/Notice";
import { Page } from "../parts/Page";
import { refine, usePlace } from "../parts/router";
import { Table, type Column } from "../parts/Table";
import type { Offer, Offers as Found } from "../types";

const CLOUDS = ["aws", "gcp", "azure"] as const;
const FILTERS = ["text", "gpu", "max_price", "cloud"] as const;
const MOST = 500;

/** Offers and prices. The filters are in the page's address, so that a view can be shared. */
export default function Offers(): JSX.Element {
  const { query } = usePlace();
  const [text, gpu, max_price, cloud] = FILTERS.map((name) => query.get(name) ?? "");
  const filter = { text, gpu, max_price, cloud };
  const [sorted, setSorted] = useState({ by: "price", down: false });
  const settled = useSettled(withQuery("/offers", { ...filter, limit: MOST }));
  const { data, error } = useGet<Found>(settled);
  const write = (name: keyof typeof filter) => (event: JSX.TargetedEvent<HTMLInputElement>) =>
    refine({ [name]: event.currentTarget.value });
  const sort = (by: string): void =>
    setSorted({ by, down: sorted.by === by ? !sorted.down : by !== "price" && by !== "spot" && by !== "type" });
  return (
    <Page
      title="Offers"
      lead={`What can be rented, at list prices${data ? ` of ${data.dated}` : ""}. Searches choose from these.`}
    >
      <form
        class="filters offers"
        role="search"
        aria-label="Filter the offers"
        onSubmit={(event) => event.preventDefault()}
      >
        <input
          type="search"
          data-filter
          aria-label="Filter by type"
          placeholder="Filter: c5, g4dn …"
          value={filter.text}
          onInput={write("text")}
        />
        <input
          type="text"
          aria-label="GPU"
          placeholder="GPU: A100, A100:8"
          spellcheck={false}
          value={filter.gpu}
          onInput={write("gpu")}
        />
        <input
          type="text"
          aria-label="Most dollars an hour"
          placeholder="max. $ an hour"
          inputMode="decimal"
          value={filter.max_price}
          onInput={write("max_price")}
        />
        <Chips
          label="Cloud"
          of={CLOUDS}
          chosen={filter.cloud as (typeof CLOUDS)[number] | ""}
          onChoose={(cloud) => refine({ cloud })}
        />
      </form>
      {error !== null && <Notice tone="bad">{error.message}</Notice>}
      {data === null && error === null && <Loading what="the catalog" />}
      {data !== null && data.offers.length === 0 && (
        <Empty title="No matching offer">
          <p>Remove a filter, or allow a higher price.</p>
        </Empty>
      )}
      {data !== null && data.offers.length > 0 && (
        <>
          <div class="fit">
            <Table
              caption="Offers"
              columns={COLUMNS}
              rows={ordered(data.offers, sorted)}
              keyOf={keyOf}
              sorted={sorted}
              onSort={sort}
            />
          </div>
          <p class="note">
            {whole(data.offers.length)}
            {data.total > data.offers.length && ` of ${whole(data.total)}`} offers. TFLOPS are the peak of all
            accelerators of a node; per $: per dollar an hour.
          </p>
        </>
      )}
    </Page>
  );
}

function keyOf(offer: Offer): string {
  return `${offer.cloud} ${offer.region} ${offer.instance_type}`;
}

function tflops(offer: Offer): number {
  return offer.accelerators * offer.tflops_per_accelerator;
}

const KEYS: Record<string, (offer: Offer) => number | string> = {
  type: (offer) => offer.instance_type,
  vcpus: (offer) => offer.vcpus,
  memory: (offer) => offer.memory_gb,
  gpus: (offer) => offer.accelerators * 1e6 + offer.tflops_per_accelerator,
  tflops,
  network: (offer) => offer.network_gbps,
  price: (offer) => offer.usd_per_hour,
  spot: (offer) => offer.spot_usd_per_hour ?? Infinity,
  "per-dollar": (offer) => tflops(offer) / offer.usd_per_hour,
};

function ordered(offers: Offer[], { by, down }: { by: string; down: boolean }): Offer[] {
  const key = KEYS[by];
  if (key === undefined) return offers;
  const sign = down ? -1 : 1;
  return [...offers].sort((a, b) => {
    const [left, right] = [key(a), key(b)];
    if (left === right) return a.instance_type.localeCompare(b.instance_type);
    return left < right ? -sign : sign;
  });
}

function accelerators(offer: Offer): string {
  return offer.accelerators === 0 ? "–" : `${offer.accelerators} × ${offer.accelerator}`;
}

function number(value: number | null): string {
  return value === null || value === 0 ? "–" : rate(value);
}

/** To a tenth of a cent: cents alone would make one price of many. */
function price(value: number | null): string {
  return value === null ? "–" : `$${value.toFixed(3)}`;
}

const COLUMNS: Column<Offer>[] = [
  {
    name: "type",
    head: "Type",
    sorts: true,
    cell: (offer) => (
      <span title={offer.source}>
        {offer.instance_type}
        <span class="under phone">
          {whole(offer.vcpus)} vCPUs, {significant(offer.memory_gb, 4)} GB
        </span>
      </span>
    ),
  },
  {
    name: "cloud",
    head: "Cloud",
    wide: true,
    cell: (offer) => <span class="soft">{`${offer.cloud} ${offer.region}`}</span>,
  },
  { name: "price", head: "$ an hour", num: true, sorts: true, cell: (offer) => <b>{price(offer.usd_per_hour)}</b> },
  { name: "spot", head: "Spot", num: true, sorts: true, wide: true, cell: (offer) => price(offer.spot_usd_per_hour) },
  {
    name: "gpus",
    head: "Accelerators",
    sorts: true,
    cell: (offer) => (
      <>
        {accelerators(offer)}
        {offer.accelerator_memory_gb > 0 && (
          <span class="soft wide-only"> {significant(offer.accelerator_memory_gb)} GB</span>
        )}
      </>
    ),
  },
  { name: "vcpus", head: "vCPUs", num: true, sorts: true, wide: true, cell: (offer) => whole(offer.vcpus) },
  {
    name: "memory",
    head: "Memory",
    num: true,
    sorts: true,
    wide: true,
    cell: (offer) => `${significant(offer.memory_gb, 4)} GB`,
  },
  {
    name: "network",
    head: "Network",
    num: true,
    sorts: true,
    wide: true,
    cell: (offer) => `${number(offer.network_gbps)} Gb/s`,
  },
  { name: "tflops", head: "TFLOPS", num: true, sorts: true, wide: true, cell: (offer) => number(tflops(offer)) },
  {
    name: "per-dollar",
    head: "per $",
    num: true,
    sorts: true,
    wide: true,
    cell: (offer) => number(tflops(offer) / offer.usd_per_hour),
  },
];
