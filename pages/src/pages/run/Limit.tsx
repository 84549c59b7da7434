/** One limit: a slider, a text field, and a switch for no limit. */

import type { JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { fromStep, rounded, STEPS, toStep } from "./values";

/** Of a thousand: two hundred key strokes from end to end. */
const KEY_STEP = 5;

interface Props {
  name: string;
  value: number | null;
  range: [number, number];
  words: (value: number) => string;
  parse: (text: string) => number | null;
  onChange: (value: number | null) => void;
  /** The limit the run really had. */
  was: number | null;
  example: string;
  /** It cannot be dropped. */
  needed?: boolean;
}

export function Limit({
  name,
  value,
  range,
  words,
  parse,
  onChange,
  was,
  example,
  needed = false,
}: Props): JSX.Element {
  const id = useId();
  const [typed, setTyped] = useState<string | null>(null);
  const [kept, setKept] = useState(value ?? range[1]);
  useEffect(() => {
    if (value !== null) setKept(value);
  }, [value]);
  const wrong = typed !== null && parse(typed) === null;
  const type = (text: string): void => {
    setTyped(text);
    const read = parse(text);
    if (read !== null) onChange(read);
  };
  return (
    <div class="limit-row">
      <div class="limit-head">
        <label for={`${id}-text`}>{name}</label>
        {!needed && (
          <label class="tick none">
            <input
              type="checkbox"
              checked={value === null}
              onChange={(event) => onChange(event.currentTarget.checked ? null : kept)}
            />
            none
          </label>
        )}
        <input
          id={`${id}-text`}
          type="text"
          inputMode="text"
          autocomplete="off"
          disabled={value === null}
          value={value === null ? "" : (typed ?? words(value))}
          placeholder={value === null ? "no limit" : example}
          aria-invalid={wrong ? "true" : undefined}
          aria-describedby={`${id}-was`}
          onFocus={(event) => event.currentTarget.select()}
          onInput={(event) => type(event.currentTarget.value)}
          onBlur={() => setTyped(null)}
          onKeyDown={(event) => event.key === "Enter" && setTyped(null)}
        />
      </div>
      <input
        type="range"
        min={0}
        max={STEPS}
        step={KEY_STEP}
        disabled={value === null}
        value={toStep(value ?? kept, range)}
        aria-label={name}
        aria-valuetext={value === null ? "no limit" : words(value)}
        onInput={(event) => {
          setTyped(null);
          onChange(rounded(fromStep(Number(event.currentTarget.value), range), 4));
        }}
      />
      <p class="limit-ends" id={`${id}-was`}>
        <span>{words(range[0])}</span>
        <span>
          {wrong ? (
            <span class="field-error">such as {example}</span>
          ) : was === null ? (
            "no limit in the run"
          ) : (
            <button type="button" class="linked" onClick={() => onChange(was)} disabled={value === was}>
              in the run: {words(was)}
            </button>
          )}
        </span>
        <span>{words(range[1])}</span>
      </p>
    </div>
  );
}
