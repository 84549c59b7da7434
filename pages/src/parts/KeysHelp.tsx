import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

const KEYS: [string[], string][] = [
  [["/"], "filter the list"],
  [["n"], "submit a job"],
  [["r"], "all runs"],
  [["Ctrl", "Enter"], "in a job file: check it, then start it"],
  [["Ctrl", "Space"], "in a job file: show completions; Ctrl+F searches, F8 goes to the next mistake"],
  [["Esc", "Tab"], "leave the job file's editor, where Tab alone indents"],
  [["←", "→", "Page Up", "Home"], "move a limit: on its slider, or on the chart"],
  [["?"], "this list"],
];

/** The keyboard shortcuts. */
export function KeysHelp({ onClose }: { onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="confirm" aria-labelledby="keys-title" onClose={onClose}>
      <h2 id="keys-title">Keys</h2>
      <dl class="keys-list">
        {KEYS.map(([keys, words]) => (
          <div key={words}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
      <div class="actions">
        <button type="button" class="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
