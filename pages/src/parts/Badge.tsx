import type { ComponentChildren, JSX } from "preact";
import type { Summary } from "../types";
import { type Standing, standingOf } from "./standing";

export type Tone = "plain" | "accent" | "good" | "bad" | "caution" | "quiet";

const TONES: Record<Standing, Tone> = {
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

export const MEANING: Record<string, string> = {
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
  const standing = standingOf(of);
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
    <Badge tone={tone} title={MEANING[of] ?? ""}>
      {of === "live" ? "real" : of}
    </Badge>
  );
}
