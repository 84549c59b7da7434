/** Buttons that continue from a result: search under other limits, or launch the job. In a report: the command. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { runPath, send } from "../../api";
import { duration, usd } from "../../format";
import { announce } from "../../parts/announce";
import { ConfirmDialog } from "../../parts/ConfirmDialog";
import { optionsOf } from "../../parts/Command";
import { may, useMe, useRefreshMe } from "../../parts/me";
import { inReport } from "../../parts/report";
import { go, Link, toRun } from "../../parts/router";
import type { Me, View } from "../../types";
import { parseDuration, parseUsd } from "./values";

/** The limits, as the command line writes them; only those that differ from the run's own. */
export type Limits = Partial<Record<"goal" | "budget" | "deadline", string>>;

interface Props {
  view: View;
  limits: Limits;
  /** What would be decided under them; null where nothing can be. */
  label: string | null;
}

type Step = "search" | "launch";

/** Whether this run itself can continue under these limits, so that its measurements are not paid for again. */
export function canContinue(view: View, limits: Limits, me: Pick<Me, "role" | "name">): boolean {
  const { status, driven, owner } = view.summary;
  const mine = me.role === "admin" || owner === null || owner === me.name;
  return mine && !driven && limits.goal === undefined && !["finished", "queued", "refused"].includes(status);
}

/** '$165 and 6 h', 'cheapest'. */
export function limitsWords({ goal, budget, deadline }: Limits): string {
  const within = [
    budget === undefined ? "" : budget === "none" ? "no budget" : usd(parseUsd(budget) ?? 0).replace(/\.00$/, ""),
    deadline === undefined ? "" : deadline === "none" ? "no deadline" : duration(parseDuration(deadline) ?? 0),
  ].filter(Boolean);
  return [goal, within.join(" and ")].filter(Boolean).join(", ");
}

/**
 * Which button is highlighted. A run that cannot continue itself would begin anew and measure anew: then a search, which
 * stops at its decision, is the better offer.
 */
export function primaryStep(changed: boolean, own: boolean): Step {
  return changed && !own ? "search" : "launch";
}

/** On the page of a what-if. */
export function ContinueActions({ view, limits, label }: Props): JSX.Element | null {
  const me = useMe();
  const [asked, setAsked] = useState<Step | null>(null);
  const changed = Object.keys(limits).length > 0;
  const own = canContinue(view, limits, me);
  const launches = view.summary.kind !== "serve" && label !== null && (changed || view.actions.includes("launch"));
  if (!may(me, "runner") || (!changed && !launches)) return null;
  const look = (step: Step): string => (step === primaryStep(changed, own) ? "button primary" : "button");
  return (
    <div class="actions go-on">
      {changed && (
        <button type="button" class={look("search")} onClick={() => setAsked("search")}>
          Search with {limitsWords(limits)} …
        </button>
      )}
      {launches && (
        <button type="button" class={look("launch")} onClick={() => setAsked("launch")}>
          Launch this …
        </button>
      )}
      {asked !== null && (
        <Question view={view} limits={limits} step={asked} own={own} label={label} onClose={() => setAsked(null)} />
      )}
    </div>
  );
}

interface QuestionProps extends Props {
  step: Step;
  own: boolean;
  /** Something was asked for: the run will change soon. */
  onActed?: (() => void) | undefined;
  onClose: () => void;
}

function Question({ view, limits, label, step, own, onActed, onClose }: QuestionProps): JSX.Element {
  const { run, job, budget_usd } = view.summary;
  const refreshMe = useRefreshMe();
  const launch = step === "launch";
  const same = Object.keys(limits).length === 0;
  const path = runPath(run, same ? "/launch" : own ? "/resume" : "/again");
  const act = async (yes: boolean): Promise<void> => {
    const body = same ? undefined : { ...limits, launch, ...(yes ? { yes } : {}) };
    const said = await send<{ run: string }>("POST", path, body);
    announce(launch ? `${said.run} will run the job` : `${said.run} is searching`);
    refreshMe();
    onActed?.();
    go(toRun(said.run));
  };
  const budget = limits.budget === undefined ? budget_usd : parseUsd(limits.budget);
  const most = budget === null ? "without a budget" : `up to ${usd(budget)}`;
  const sentences = [
    own
      ? "This run continues: its measurements are kept and not paid for again."
      : "A new run of the same job starts and measures from the beginning.",
    launch
      ? `Then the job itself runs on the chosen configuration${label ? `: ${label}, by what is known now` : ""}.`
      : "It stops at its decision. You can then launch the job from its page.",
    budget === null
      ? "There is no budget: it stops only at its deadline, or when you stop it."
      : `It may spend ${most} in all${own ? `; ${usd(view.summary.spent_usd)} of that is already spent` : ""}.`,
    ...(view.summary.provenance === "simulated" ? ["Everything is simulated: nothing is rented."] : []),
  ];
  return (
    <ConfirmDialog
      title={launch ? `Launch ${job}?` : `Search with ${limitsWords(limits)}?`}
      sentences={sentences}
      words={commandOf(view, limits, launch, own)}
      yes={launch ? "Launch" : "Search"}
      agree={budget === null ? "Yes, spend without a budget" : `Yes, spend ${most}`}
      act={act}
      onClose={onClose}
    />
  );
}

/** The equivalent command: resume the run, or start a new one of its job file. */
export function commandOf(view: View, limits: Limits, launch: boolean, own: boolean): string[] {
  const { run, kind } = view.summary;
  if (launch && Object.keys(limits).length === 0) return ["launch", run];
  const options = [...optionsOf(limits as Record<string, string>), ...(launch ? ["-y"] : ["--decide-only"])];
  if (own) return ["resume", run, ...options];
  return [kind === "functions" ? "train" : kind, "JOB.yaml", ...options];
}

interface SuggestionProps {
  view: View;
  onActed?: (() => void) | undefined;
}

/** For a result without a feasible configuration: each limit that would be enough. In a report: the commands. */
export function LimitSuggestions({ view, onActed }: SuggestionProps): JSX.Element | null {
  if (inReport() && view.actions.includes("launch"))
    return (
      <p class="answer-more">
        <code>mlcd launch {view.summary.run}</code>
      </p>
    );
  const ways = suggestedLimits(view, true);
  if (view.summary.status !== "infeasible" || ways.length === 0) return null;
  if (inReport())
    return (
      <p class="answer-more">
        {ways.map((way) => (
          <code key={way.words}>{["mlcd", ...commandOf(view, way.limits, false, true)].join(" ")} </code>
        ))}
      </p>
    );
  return <SuggestionButtons view={view} onActed={onActed} />;
}

interface Way {
  limits: Limits;
  label: string | null;
  words: string;
}

function SuggestionButtons({ view, onActed }: SuggestionProps): JSX.Element {
  const me = useMe();
  const own = canContinue(view, {}, me);
  const [asked, setAsked] = useState<Way | null>(null);
  if (!may(me, "runner")) return <></>;
  return (
    <div class="actions go-on">
      {suggestedLimits(view, own).map((way) => (
        <button key={way.words} type="button" class="button primary" onClick={() => setAsked(way)}>
          Search with {way.words} …
        </button>
      ))}
      <Link class="button" to={toRun(view.summary.run, "/explore")}>
        Try other limits
      </Link>
      {asked !== null && (
        <Question
          view={view}
          {...asked}
          step="search"
          own={own}
          onActed={onActed}
          onClose={() => setAsked(null)}
        />
      )}
    </div>
  );
}

/** A new search spends and measures a little differently, so it gets this much more than the run itself would need. */
const ANEW = 1.07;

/**
 * The limits that would be enough, rounded up: for this run to continue (`own`), or for a new one.
 * The deadline of a run on real machines counts from its start, also while it does not continue.
 */
export function suggestedLimits({ document, summary }: View, own: boolean, now = Date.now()): Way[] {
  const decision = "decision" in document ? document.decision : null;
  const { provenance, started_at, elapsed_s } = summary;
  const since = own && provenance === "live" ? Math.max(0, (now - Date.parse(started_at)) / 1000 - elapsed_s) : 0;
  const share = own ? 1 : ANEW;
  return (decision?.relaxations ?? []).flatMap((way) => {
    const limits: Limits = {
      ...(way.budget_usd === null ? {} : { budget: (Math.ceil(share * way.budget_usd * 100) / 100).toFixed(2) }),
      ...(way.deadline_s === null ? {} : { deadline: `${Math.ceil((share * way.deadline_s + since) / 60)}m` }),
    };
    if (Object.keys(limits).length === 0) return [];
    return [{ limits, label: way.label ?? null, words: limitsWords(limits) }];
  });
}
