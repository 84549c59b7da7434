/** Asks for confirmation, with the maximum cost; a second time if that is real money. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, line } from "../api";
import { announce } from "./announce";
import { Command } from "./Command";
import { Notice } from "./Notice";

interface Props {
  title: string;
  sentences: string[];
  /** The equivalent command. */
  words: string[];
  /** The text of the confirming button. */
  yes: string;
  /** Its text when it agrees to spend real money. */
  agree?: string;
  look?: string;
  /** `agreed`: the user has agreed to spend real money. */
  act: (agreed: boolean) => Promise<void>;
  onClose: () => void;
}

export function ConfirmDialog({ title, sentences, words, yes, agree = yes, look = "primary", act, onClose }: Props): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [waiting, setWaiting] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [asks, setAsks] = useState<string | null>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const proceed = async (): Promise<void> => {
    setWaiting(true);
    setError(null);
    try {
      await act(asks !== null);
      onClose();
    } catch (problem) {
      if (problem instanceof ApiError && problem.asks !== null) {
        setAsks(problem.asks);
        announce(problem.asks);
      } else setError(line(problem));
      setWaiting(false);
    }
  };
  return (
    <dialog ref={dialog} class="confirm" aria-labelledby="confirm-title" onClose={onClose}>
      <h2 id="confirm-title">{title}</h2>
      {sentences.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      <Command words={words} />
      {asks !== null && <Notice tone="caution">{asks}</Notice>}
      {error !== null && <Notice tone="bad">{error}</Notice>}
      <div class="actions">
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class={`button ${look}`} disabled={waiting} onClick={() => void proceed()}>
          {waiting ? "Sending …" : asks !== null ? agree : yes}
        </button>
      </div>
    </dialog>
  );
}
