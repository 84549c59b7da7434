import { cloneElement } from "preact";
import type { ComponentChildren, JSX, VNode } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  /** An error message. */
  error?: string | null | undefined;
  class?: string;
  children: VNode<JSX.HTMLAttributes<HTMLElement>>;
}

/** A label, one control, a hint, and an error message. */
export function Field({ label, hint, error, children, ...rest }: FieldProps): JSX.Element {
  const id = useId();
  const about = [hint !== undefined && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  const control = cloneElement(children, {
    id,
    ...(about && { "aria-describedby": about }),
    ...(error && { "aria-invalid": "true" }),
  });
  return (
    <div class={`field ${rest.class ?? ""}`}>
      <label for={id}>{label}</label>
      {control}
      {error && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

interface ChipsProps<T extends string> {
  label: string;
  of: readonly T[];
  chosen: T | "";
  onChoose: (value: T | "") => void;
  counts?: Partial<Record<T, number>>;
}

/** One of a few, or all of them. */
export function Chips<T extends string>({ label, of, chosen, onChoose, counts }: ChipsProps<T>): JSX.Element {
  return (
    <div class="chips" role="group" aria-label={label}>
      {["" as const, ...of].map((value) => (
        <button
          key={value}
          type="button"
          class="chip"
          aria-pressed={chosen === value}
          onClick={() => onChoose(chosen === value ? "" : value)}
        >
          {value || "all"}
          {value !== "" && counts?.[value] !== undefined && <small>{counts[value]}</small>}
        </button>
      ))}
    </div>
  );
}
