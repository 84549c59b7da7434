/** The difference between a run's labels and those in a form. Tags are added and removed singly: others may edit, too. */

import type { LabelChange, Summary } from "../../types";

interface Written {
  project: string;
  tags: string;
  note: string;
  archived: boolean;
}

/** 'nightly, ci' -> ['nightly', 'ci']. */
export function tagsIn(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}

export function changeOf(run: Pick<Summary, "project" | "tags" | "note" | "archived">, now: Written): Partial<LabelChange> {
  const tags = tagsIn(now.tags);
  const [added, gone] = [tags.filter((tag) => !run.tags.includes(tag)), run.tags.filter((tag) => !tags.includes(tag))];
  const project = now.project.trim();
  return {
    ...(project !== (run.project ?? "") && { project }),
    ...(added.length > 0 && { add_tags: added }),
    ...(gone.length > 0 && { remove_tags: gone }),
    ...(now.note !== run.note && { note: now.note }),
    ...(now.archived !== run.archived && { archived: now.archived }),
  };
}
