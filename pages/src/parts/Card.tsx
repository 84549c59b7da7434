import type { ComponentChildren, JSX } from "preact";

interface CardProps {
  title?: string;
  note?: ComponentChildren;
  actions?: ComponentChildren;
  class?: string;
  children?: ComponentChildren;
}

/** A part of a page, with its heading. */
export function Card({ title, note, actions, children, ...rest }: CardProps): JSX.Element {
  return (
    <section class={`card ${rest.class ?? ""}`}>
      {title !== undefined && (
        <header class="card-head">
          <h2>{title}</h2>
          {actions}
        </header>
      )}
      {children}
      {note !== undefined && <p class="note">{note}</p>}
    </section>
  );
}

export interface Figure {
  name: string;
  value: ComponentChildren;
  note?: ComponentChildren;
}

/** Key figures. */
export function Figures({ of }: { of: Figure[] }): JSX.Element {
  return (
    <dl class="figures">
      {of.map(({ name, value, note }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <b>{value}</b>
            {note !== undefined && <span>{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
