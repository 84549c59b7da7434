/** The types of the API under the names that the pages use. All but `RunEvent` are generated from its OpenAPI document. */

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
/** The kinds on the Submit page; the API also accepts planners of other packages. */
export type Kind = "train" | "tune" | "scale" | "serve";
export type Role = MemberAnswer["role"];
export type Per = MemberAnswer["budget_per"];
export type Budget = Pick<MemberAnswer, "budget_usd" | "budget_per" | "spent_usd" | "claimed_usd">;
export type Refusal = Pick<ServeRun["refused"][number], "label" | "because">;

/** The body of a submission or a check; everything but `kind` and `options` is optional. */
export type Asked = Pick<Submission, "kind"> &
  Partial<Omit<Submission, "options">> & { options: Record<string, string | string[]> };

/** One event of a stream: an entry of the ledger, in words. */
export interface RunEvent {
  seq: number;
  run: string;
  kind: string;
  elapsed_s: number;
  written_at: string;
  words: string;
}

/** The probes that the limits did not allow. */
export function refusalsOf({ document }: RunPage): Refusal[] {
  return "refused" in document ? document.refused : [];
}

/** The document of a serving run; null for other runs. */
export function servingOf({ document }: RunPage): ServeRun | null {
  return "planner" in document && document.planner === "serve" ? (document as ServeRun) : null;
}

/** The document of a run on functions; null for other runs. */
export function functionsOf({ document }: RunPage): TuneRun | null {
  return "planner" in document && document.planner === "tune" ? (document as TuneRun) : null;
}

/** Whether the run's planner comes with another package: its page then consists of facts, tables and figures. */
export function isOther({ document }: RunPage): boolean {
  return "part" in document;
}
