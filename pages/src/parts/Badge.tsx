import type { ComponentChildren, JSX } from "preact";
import type { Summary } from "../types";
import { type DisplayedStatus, displayedStatusOf } from "./displayedStatus";

export type Tone = "plain" | "accent" | "good" | "bad" | "caution" | "quiet";

const TONES: Record<DisplayedStatus, Tone> = {
  queued: "quiet",
  refused: "bad",
  searching: "accent",
  interrupted: "caution",
  decided: "plain",
  infeasible: "caution",
  running: "accent",
  finished: "good",
  failed: "bad",
  stopped: "caution",
};

export const PROVENANCE_MEANING: Record<string, string> = {
  simulated: "These numbers come from a model of a cloud. They are not measurements.",
  recorded: "These numbers replay measurements made earlier; nothing is rented for this run.",
  live: "These numbers are measured on machines rented for this run.",
};

export function Badge({
  tone = "plain",
  title,
  children,
}: {
  tone?: Tone;
  title?: string;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <span class={`badge tone-${tone}`} title={title}>
      {children}
    </span>
  );
}

/** A status with a mark, not only a colour; it moves while the run is driven. */
export function StatusBadge({ of }: { of: Pick<Summary, "status" | "driven"> }): JSX.Element {
  const standing = displayedStatusOf(of);
  return (
    <span class={`status tone-${TONES[standing]}${of.driven ? " driven" : ""}`}>
      <i aria-hidden="true" />
      {standing}
    </span>
  );
}

export function Provenance({ of }: { of: string }): JSX.Element {
  const tone = of === "simulated" ? "caution" : of === "live" ? "accent" : "plain";
  return (
    <Badge tone={tone} title={PROVENANCE_MEANING[of] ?? ""}>
      {of === "live" ? "real" : of}
    </Badge>
  );
}
