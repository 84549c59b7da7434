/** Offers, and what earlier runs have taught. */

export interface Offer {
  cloud: string;
  instance_type: string;
  region: string;
  vcpus: number;
  memory_gb: number;
  accelerator: string;
  accelerators: number;
  tflops_per_accelerator: number;
  accelerator_memory_gb: number;
  network_gbps: number;
  usd_per_hour: number;
  spot_usd_per_hour: number | null;
  price_date: string;
  source: string;
}

export interface Offers {
  offers: Offer[];
  total: number;
  dated: string;
}

/** What an elastic run has learned, as its file tells it. */
export interface LearnedModel {
  name: string;
  run: string;
  saved_at: string;
  provenance: string;
  identity: {
    job: string;
    parameters: number | null;
    dataset_samples: number | null;
    fingerprint: { architecture: string; data: string; optimizer: string };
  };
  machines: { instance_type: string; usd_per_hour: number; devices: number }[];
  nodes: number[];
  batches: number[];
  target: { metric: string; value: number; at_least: boolean } | null;
  epochs: number | null;
  version: string;
}

export interface Learned {
  models: LearnedModel[];
  unreadable: { name: string; because: string }[];
}

/** A model that was measured before. Parameters in billions, weights in 2**20 bytes; operators: shares of its time. */
export interface SeenModel {
  name: string;
  family: string;
  inputs: string;
  weights_mb: number | null;
  parameters: number | null;
  cells: number;
  operators: Record<string, number>;
}

/** What a search for how to serve starts from. */
export interface KnowledgeBase {
  name: string;
  source: string;
  models: SeenModel[];
}
