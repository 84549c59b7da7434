/** The browser's tab: its title and icon show a run's status. */

import { useEffect } from "preact/hooks";
import type { Status, Summary } from "../types";
import { displayedStatusOf } from "./displayedStatus";

export interface Tab {
  title: string;
  /** Which icon of public/; '' is the plain one. */
  icon: "" | "-busy" | "-good" | "-bad";
}

const OVER: Partial<Record<Status, [string, Tab["icon"]]>> = {
  finished: ["✓", "-good"],
  decided: ["✓", "-good"],
  failed: ["✗", "-bad"],
  refused: ["✗", "-bad"],
  infeasible: ["✗", "-bad"],
};

/** '● searching: resnet50-3', '✓ finished: resnet50-1', 'stopped: resnet50-2'. */
export function tabOf(summary: Pick<Summary, "status" | "driven" | "run">): Tab {
  const [sign, icon] = summary.driven ? (["●", "-busy"] as const) : (OVER[summary.status] ?? (["", ""] as const));
  return { title: `${sign} ${displayedStatusOf(summary)}: ${summary.run}`.trim(), icon };
}

export function useTab({ title, icon }: Tab): void {
  useEffect(() => {
    document.title = `${title} – MLCD`;
    const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
    if (link) link.href = `/icon${icon}.svg`; // a report has none
  }, [title, icon]);
}
