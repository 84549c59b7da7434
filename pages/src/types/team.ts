/** Who looks, who may do what, and who did what. */

export type Role = "viewer" | "runner" | "admin";

export interface Me {
  name: string | null;
  role: Role;
  team: string | null;
  left_usd: number | null;
  budget_usd: number | null;
  /** When a budget begins anew; null: never. */
  renewed_on?: string | null;
  mode: "ui" | "service";
  version: string;
  places: string[];
  recordings: string[];
  limits: Record<string, number>;
}

/** Over everything, or over each month anew. */
export type Per = "total" | "month";

/** What may be spent, what was in its time, and what runs can still spend: null, if one of them has no limit. */
export interface Budget {
  budget_usd: number | null;
  budget_per: Per;
  spent_usd: number;
  claimed_usd: number | null;
}

export interface Member extends Budget {
  name: string;
  role: Role;
  team: string | null;
  left_usd: number | null;
}

export interface AuditEntry {
  seq: number;
  at: string;
  who: string;
  action: string;
  about: string;
  outcome: string;
  detail: string;
}
