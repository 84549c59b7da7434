/** A text in YAML: a text area at once, and a real editor in its place as soon as that is loaded. */

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Handle } from "../../editor/editor";
import type { Schema } from "../../editor/schema";
import type { JobMistake } from "../../types";
import { Mistakes } from "./Mistakes";

interface EditorProps {
  id: string;
  label: string;
  text: string;
  rows: number;
  placeholder: string;
  /** Why it was refused, and the line that is to blame. */
  error: string | null;
  line: number | null;
  /** All that is wrong with it as it stands; null: that is not known, or not asked. */
  mistakes?: readonly JobMistake[] | null;
  schema?: Schema | null;
  onWrite: (text: string) => void;
  onSend: () => void;
}

/** Ctrl+Enter sends the text; buttons jump to its mistakes. */
export function Editor(props: EditorProps): JSX.Element {
  const { id, label, text, rows, error, line, mistakes = null, schema = null } = props;
  const area = useRef<HTMLTextAreaElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const editor = useEditor(host, latest);
  const described = error !== null ? `${id}-error` : mistakes?.length ? `${id}-mistakes` : null;
  const wrong = described !== null;
  useLayoutEffect(() => editor?.write(text), [editor, text]);
  useEffect(() => editor?.hint(schema), [editor, schema]);
  useEffect(() => editor?.mark(mistakes ?? []), [editor, mistakes]);
  useEffect(() => editor?.describe(wrong, described), [editor, wrong, described]);
  const jump = (to: number, column: number): void => {
    if (editor !== null) editor.jump(to, column);
    else if (area.current !== null) select(area.current, to);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    props.onSend();
  };
  return (
    <div class="field">
      <label id={`${id}-label`} for={editor === null ? id : undefined} onClick={() => editor?.focus()}>
        {label}
      </label>
      <div ref={host} class={wrong ? "editor wrong" : "editor"} style={{ "--rows": rows }} hidden={editor === null} />
      {editor === null && (
        <textarea
          ref={area}
          id={id}
          rows={rows}
          spellcheck={false}
          autocapitalize="off"
          wrap="off"
          placeholder={props.placeholder}
          value={text}
          aria-invalid={wrong}
          aria-describedby={described ?? undefined}
          onInput={(event) => props.onWrite(event.currentTarget.value)}
          onKeyDown={press}
        />
      )}
      {error !== null && (
        <p class="field-error" id={`${id}-error`} role="alert">
          {error}{" "}
          {line !== null && (
            <button type="button" class="button quiet small" onClick={() => jump(line, 1)}>
              Show line {line}
            </button>
          )}
        </p>
      )}
      {mistakes !== null && <Mistakes id={`${id}-mistakes`} of={mistakes} onShow={jump} />}
    </div>
  );
}

/** The editor in this element, once its code is there. Where that cannot be loaded, the text area stays. */
function useEditor(host: { current: HTMLElement | null }, props: { current: EditorProps }): Handle | null {
  const [editor, setEditor] = useState<Handle | null>(null);
  useEffect(() => {
    let made: Handle | null = null;
    let left = false;
    const show = ({ mount }: typeof import("../../editor/editor")): void => {
      if (left || host.current === null) return;
      const { id, text, placeholder } = props.current;
      const typing = document.activeElement?.id === id;
      made = mount(host.current, {
        id,
        text,
        placeholder,
        labelledBy: `${id}-label`,
        onWrite: (written) => props.current.onWrite(written),
        onSend: () => props.current.onSend(),
      });
      host.current.hidden = false;
      if (typing) made.focus();
      setEditor(made);
    };
    import("../../editor/editor").then(show, () => undefined);
    return () => {
      left = true;
      made?.destroy();
    };
  }, []);
  return editor;
}

function select(area: HTMLTextAreaElement, line: number): void {
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  area.focus();
  area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
}
