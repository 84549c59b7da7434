import type { ComponentChildren, JSX } from "preact";
import { type Tab, useTab } from "./tab";

interface PageProps {
  title: string;
  /** One sentence under the title. */
  lead?: ComponentChildren;
  /** Buttons, at the right of the title. */
  actions?: ComponentChildren;
  /** Above the title: breadcrumbs. */
  above?: ComponentChildren;
  narrow?: boolean;
  /** In the browser's tab; else the title. */
  tab?: Tab;
  children?: ComponentChildren;
}

/** A page: its one h1, and its title in the browser's tab. */
export function Page({ title, lead, actions, above, narrow = false, tab, children }: PageProps): JSX.Element {
  useTab(tab ?? { title, icon: "" });
  return (
    <div class={narrow ? "page narrow" : "page"}>
      <header class="page-head">
        <div>
          {above}
          <h1>{title}</h1>
          {lead !== undefined && <p class="lead">{lead}</p>}
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
