/** An editor of YAML by CodeMirror. It is a chunk of its own: only pages with an editor load it. */

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import {
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  placeholder,
} from "@codemirror/view";
import type { JobMistake } from "../types";
import { completions, meanings } from "./hints";
import { LOOK, WORDS } from "./look";
import { diagnostic, position } from "./marks";
import type { Schema } from "./schema";

export interface Options {
  id: string;
  /** The id of its label. */
  labelledBy: string;
  text: string;
  placeholder: string;
  onWrite: (text: string) => void;
  onSend: () => void;
}

export interface Handle {
  /** Replace the text, if it is another: as a new file, whose changes can be undone. */
  write: (text: string) => void;
  mark: (mistakes: readonly JobMistake[]) => void;
  /** Tells screen readers whether there are mistakes, and the id of what tells them. */
  describe: (wrong: boolean, by: string | null) => void;
  hint: (schema: Schema | null) => void;
  jump: (line: number, column: number) => void;
  focus: () => void;
  destroy: () => void;
}

export function mount(parent: HTMLElement, options: Options): Handle {
  const attributes = new Compartment();
  const hints = new Compartment();
  const described = (more: Record<string, string>): ReturnType<typeof EditorView.contentAttributes.of> =>
    EditorView.contentAttributes.of({
      id: options.id,
      "aria-labelledby": options.labelledBy,
      tabindex: "0",
      autocapitalize: "off",
      spellcheck: "false",
      ...more,
    });
  const send = {
    key: "Mod-Enter",
    run: () => {
      options.onSend();
      return true;
    },
  };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        keymap.of([send, ...closeBracketsKeymap, ...completionKeymap, ...lintKeymap]),
        keymap.of([...searchKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab]),
        yaml(),
        [lineNumbers(), highlightActiveLine(), highlightActiveLineGutter(), highlightSelectionMatches()],
        [history(), bracketMatching(), closeBrackets(), indentOnInput(), indentUnit.of("  "), search({ top: true })],
        [LOOK, syntaxHighlighting(WORDS), placeholder(options.placeholder)],
        attributes.of(described({ "aria-invalid": "false" })),
        hints.of([]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) options.onWrite(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    write: (text) => {
      if (text === view.state.doc.toString()) return;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 } });
    },
    mark: (mistakes) => {
      const found = mistakes.map((each) => diagnostic(view.state, each)).sort((a, b) => a.from - b.from);
      view.dispatch(setDiagnostics(view.state, found));
    },
    describe: (wrong, by) =>
      view.dispatch({
        effects: attributes.reconfigure(
          described({ "aria-invalid": String(wrong), ...(by !== null && { "aria-describedby": by }) }),
        ),
      }),
    hint: (schema) =>
      view.dispatch({
        effects: hints.reconfigure(
          schema === null ? [] : [autocompletion({ override: [completions(schema)] }), meanings(schema)],
        ),
      }),
    jump: (line, column) => {
      view.dispatch({ selection: { anchor: position(view.state, line, column) }, scrollIntoView: true });
      view.focus();
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
