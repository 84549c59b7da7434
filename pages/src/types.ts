/** What the API sends and takes, by the names that the pages have for it. All of it but `News` is made from its document. */

import type { Asked as Submission, MemberAnswer, RunPage, ServeRun, Summary, TuneRun } from "./types/api";

export type {
  AuditedAction as AuditEntry,
  Certificate,
  Comparison,
  DriverAnswer,
  CertificateTerm as Term,
  Example,
  Fact,
  Figure,
  Previewed as Checked,
  FunctionPlan as Plan,
  AllocatedStage as Stage,
  Headway,
  Health,
  JobFile,
  JobMistake,
  JobMistakes,
  KnowledgeBase,
  LabelChange,
  LabelsInUse,
  KnownModel as SeenModel,
  LearnedModel,
  LogLine,
  LogMatches,
  LogParts,
  LogWindow,
  MachineUsage,
  LedgerRow,
  Me,
  MadeToken,
  MemberAnswer as Member,
  Models as Learned,
  MyTokens,
  AddedReceiver,
  AskedReceiver,
  EventState as NewsEvent,
  NewsAnswer,
  ReceiverState as Receiver,
  Tried as TriedReceiver,
  OfferRow as Offer,
  Offers,
  OperatorShare as Operator,
  RunForecast as Finish,
  PathStep as Step,
  QueuedRun,
  Ranked,
  RunPage as View,
  RunTable,
  RunTables,
  Runs,
  RunTrial as Trial,
  TrialResult as TunedTrial,
  ServeRun as Serving,
  Spend,
  Spending,
  SpendPoint,
  SpendShare as Share,
  SpendMonth as Month,
  Summary,
  Table,
  TeamAnswer,
  TokenState,
  Tradeoff,
  TradeoffPoint,
  TuneRun as Functions,
  UnderWay,
  UsagePoint,
  Uploaded,
  WhatIf,
  WorkersAnswer,
  WorkerState,
} from "./types/api";

export type Status = Summary["status"];
export type Action = RunPage["actions"][number];
/** What the page of a new run offers; the API takes planners of other packages, too. */
export type Kind = "train" | "tune" | "scale" | "serve";
export type Role = MemberAnswer["role"];
export type Per = MemberAnswer["budget_per"];
export type Budget = Pick<MemberAnswer, "budget_usd" | "budget_per" | "spent_usd" | "claimed_usd">;
export type Refusal = Pick<ServeRun["refused"][number], "label" | "because">;

/** What is submitted or checked; all but its kind and options may be left out. */
export type Asked = Pick<Submission, "kind"> &
  Partial<Omit<Submission, "options">> & { options: Record<string, string | string[]> };

/** One event of a stream: an entry of the ledger, in words. */
export interface News {
  seq: number;
  run: string;
  kind: string;
  elapsed_s: number;
  written_at: string;
  words: string;
}

/** What the limits did not allow. */
export function refusalsOf({ document }: RunPage): Refusal[] {
  return "refused" in document ? document.refused : [];
}

/** A run's document, where it serves a model. The planner of another package may have any name but ours. */
export function servingOf({ document }: RunPage): ServeRun | null {
  return "planner" in document && document.planner === "serve" ? (document as ServeRun) : null;
}

/** The same of a run on functions. */
export function functionsOf({ document }: RunPage): TuneRun | null {
  return "planner" in document && document.planner === "tune" ? (document as TuneRun) : null;
}

/** Whether its planner comes with another package: then it shows itself by facts, tables and figures. */
export function isOther({ document }: RunPage): boolean {
  return "part" in document;
}
