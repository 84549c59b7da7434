/** The actions on a run. Each asks for confirmation, with the most it can cost. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { runPath, send } from "../../api";
import { duration, usd } from "../../format";
import { announce } from "../../parts/announce";
import { ConfirmDialog } from "../../parts/ConfirmDialog";
import { may, useMe, useRefreshMe } from "../../parts/me";
import { type Action, functionsOf, type View } from "../../types";

const NAMES: Record<Action, string> = { launch: "Launch it", resume: "Resume", stop: "Stop", down: "End now" };
const LOOKS: Record<Action, string> = { launch: "primary", resume: "primary", stop: "", down: "danger" };

interface Props {
  view: View;
  /** An action was requested; the run will change soon. */
  onActed: () => void;
}

export function Actions({ view, onActed }: Props): JSX.Element | null {
  const me = useMe();
  const [asked, setAsked] = useState<Action | null>(null);
  if (view.actions.length === 0) return null;
  const allowed =
    may(me, "runner") && (me.role === "admin" || view.summary.owner === null || view.summary.owner === me.name);
  if (!allowed) {
    const why = may(me, "runner")
      ? `Only ${view.summary.owner} or an admin can act on this run.`
      : "Your role is viewer: only runners can act on runs.";
    return <span class="soft may-not">{why}</span>;
  }
  return (
    <>
      {view.actions.map((action) => (
        <button key={action} type="button" class={`button ${LOOKS[action]}`} onClick={() => setAsked(action)}>
          {NAMES[action]} …
        </button>
      ))}
      {asked !== null && <Confirm view={view} action={asked} onClose={() => setAsked(null)} onActed={onActed} />}
    </>
  );
}

function Confirm({ view, action, onClose, onActed }: Props & { action: Action; onClose: () => void }): JSX.Element {
  const refreshMe = useRefreshMe();
  const act = async (): Promise<void> => {
    const said = await send<{ words: string }>("POST", runPath(view.summary.run, `/${action}`));
    announce(said.words);
    refreshMe();
    onActed();
  };
  return (
    <ConfirmDialog
      {...question(view, action)}
      words={[action, view.summary.run]}
      yes={NAMES[action]}
      look={LOOKS[action] || "primary"}
      act={act}
      onClose={onClose}
    />
  );
}

/** What is about to happen, and the most it can cost. */
export function question(view: View, action: Action): { title: string; sentences: string[] } {
  const { summary } = view;
  const open = view.under_way.reduce((sum, each) => sum + (each.worst_usd ?? 0), 0);
  const left = summary.budget_usd === null ? null : summary.budget_usd - summary.spent_usd;
  const limit =
    left === null
      ? "There is no budget: it stops only at its deadline, or when you stop it."
      : `${usd(left)} of the budget is left: ${usd(summary.spent_usd)} of ${usd(summary.budget_usd!)} is spent. It never spends more.`;
  switch (action) {
    case "launch":
      return {
        title: `Launch ${summary.job} on ${summary.chosen ?? "the decided configuration"}?`,
        sentences: [launching(view), limit],
      };
    case "resume":
      return {
        title: `Resume ${summary.run}?`,
        sentences: ["Finished probes are not paid for again.", limit],
      };
    case "stop":
      return {
        title: `Stop ${summary.run}?`,
        sentences: [
          view.under_way.some((each) => each.purpose === "run")
            ? "If the job saves checkpoints, it ends now; otherwise it runs to its end. Nothing is lost: you can resume it."
            : `A running probe finishes first${open > 0 ? `, for at most ${usd(open)}` : ""}. All measurements are kept, and you can resume it.`,
        ],
      };
    case "down":
      return {
        title: `End ${summary.run} now?`,
        sentences: [
          `Its machines are torn down at once. The running step is lost${open > 0 ? `, and may have cost up to ${usd(open)}` : ""}; earlier measurements are kept, and you can resume it.`,
        ],
      };
  }
}

function launching(view: View): string {
  const chosen = view.path.find((step) => step.chosen)?.finish;
  if (chosen)
    return `Expected: ${usd(chosen.usd)} and ${duration(chosen.seconds)}. At most: ${usd(chosen.worst_usd)} and ${duration(chosen.worst_seconds)}.`;
  const plan = functionsOf(view)?.decision?.plans.find((each) => each.chosen);
  if (plan) return `Planned: ${usd(plan.usd)} and ${duration(plan.seconds)}.`;
  const kept = view.certificate?.terms
    .map((term) => (term.unit === "usd" ? usd(term.kept) : duration(term.kept)))
    .join(" and ");
  return kept ? `Worst case: ${kept}.` : "Its time and cost were not predicted.";
}
