/** The source of a submission: a dropped or chosen file, an example, or typed text. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Example } from "../../types";

interface DropProps {
  onFile: (file: File) => void;
  busy: string | null;
  error: string | null;
}

/** The drop zone; files can be dropped anywhere on the page. */
export function Drop({ onFile, busy, error }: DropProps): JSX.Element {
  const [over, setOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const take = useRef(onFile);
  take.current = onFile;
  useEffect(() => {
    const hold = (event: DragEvent): void => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent): void => {
      const file = event.dataTransfer?.files[0];
      setOver(false);
      if (file === undefined) return;
      event.preventDefault();
      take.current(file);
    };
    window.addEventListener("dragover", hold);
    window.addEventListener("dragleave", leave);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragover", hold);
      window.removeEventListener("dragleave", leave);
      window.removeEventListener("drop", drop);
    };
  }, []);
  const picked = (event: JSX.TargetedEvent<HTMLInputElement>): void => {
    const file = event.currentTarget.files?.[0];
    if (file !== undefined) onFile(file);
    event.currentTarget.value = ""; // the same file again is a choice, too
  };
  return (
    <div class={over ? "drop over" : "drop"}>
      <svg viewBox="0 0 24 24" width="28" height="28" aria-hidden="true">
        <path
          d="M12 15V4m0 0L8 8m4-4 4 4M4 15v4h16v-4"
          fill="none"
          stroke="currentColor"
          stroke-width="1.6"
          stroke-linecap="round"
          stroke-linejoin="round"
        />
      </svg>
      <p>
        <b>{busy ?? "Drop a job file or an ONNX model"}</b>
        <span class="under">anywhere on this page: .yaml to train, .onnx to serve</span>
      </p>
      <button type="button" class="button" disabled={busy !== null} onClick={() => picker.current?.click()}>
        Choose a file
      </button>
      <input
        ref={picker}
        hidden
        type="file"
        accept=".yaml,.yml,.onnx"
        aria-label="A job file or an ONNX model"
        onChange={picked}
      />
      {error !== null && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

interface ExamplesProps {
  label: string;
  of: Example[];
  onChoose: (example: Example) => void;
}

export function Examples({ label, of, onChoose }: ExamplesProps): JSX.Element | null {
  if (of.length === 0) return null;
  return (
    <div class="chips examples" role="group" aria-label={label}>
      <span class="soft">{label}</span>
      {of.map((example) => (
        <button key={example.name} type="button" class="chip" onClick={() => onChoose(example)}>
          {example.name}
        </button>
      ))}
    </div>
  );
}
