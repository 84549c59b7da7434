/** What changes between a run's labels and those in a form. Tags come and go one by one, so that nobody's is lost. */

import type { LabelChange, Summary } from "../../types";

interface Written {
  project: string;
  tags: string;
  note: string;
  archived: boolean;
}

export function changeOf(run: Pick<Summary, "project" | "tags" | "note" | "archived">, now: Written): Partial<LabelChange> {
  const tags = now.tags.split(/[\s,]+/).filter(Boolean);
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
