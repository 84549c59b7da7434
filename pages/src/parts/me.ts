/** The current user and their role. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Me, Role } from "../types";

export const MeContext = createContext<{ me: Me; refresh: () => void } | null>(null);

const RANK: Record<Role, number> = { viewer: 0, runner: 1, admin: 2 };

export function useMe(): Me {
  const found = useContext(MeContext);
  if (found === null) throw new Error("only inside the layout");
  return found.me;
}

/** Refresh the remaining budget, after a submission. */
export function useRefreshMe(): () => void {
  return useContext(MeContext)?.refresh ?? (() => undefined);
}

export function may(me: Me, role: Role): boolean {
  return RANK[me.role] >= RANK[role];
}
