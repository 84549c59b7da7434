import type { JSX } from "preact";

interface Props<T extends string> {
  /** For screen readers. */
  label: string;
  of: readonly T[];
  chosen: T;
  onChoose: (value: T) => void;
  name?: (value: T) => string;
}

/** One of a few, always: buttons in a row. */
export function Segments<T extends string>({ label, of, chosen, onChoose, name = String }: Props<T>): JSX.Element {
  return (
    <div class="segments" role="group" aria-label={label}>
      {of.map((each) => (
        <button key={each} type="button" aria-pressed={each === chosen} onClick={() => onChoose(each)}>
          {name(each)}
        </button>
      ))}
    </div>
  );
}
