/** Who looks, who may do what, and who did what. */

export type Role = "viewer" | "runner" | "admin";

export interface Me {
  name: string | null;
  role: Role;
  team: string | null;
  left_usd: number | null;
  budget_usd: number | null;
  mode: "ui" | "service";
  version: string;
  places: string[];
  recordings: string[];
  limits: Record<string, number>;
}

export interface Member {
  name: string;
  role: Role;
  team: string | null;
  budget_usd: number | null;
  left_usd?: number | null;
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
