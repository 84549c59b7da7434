import type { ComponentChildren, JSX } from "preact";

/** A notice. Errors are read out at once. */
export function Notice({
  tone = "plain",
  children,
}: {
  tone?: "plain" | "good" | "bad" | "caution";
  children: ComponentChildren;
}): JSX.Element {
  return (
    <div class={`notice tone-${tone}`} role={tone === "bad" ? "alert" : "status"}>
      {children}
    </div>
  );
}

/** An empty state, with what to do next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Loading({ what }: { what: string }): JSX.Element {
  return (
    <p class="loading" role="status">
      Reading {what} …
    </p>
  );
}
