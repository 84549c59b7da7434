/** The colours of a terminal in a line of a log, as pieces of text and names of classes: never as HTML. */

export interface Span {
  text: string;
  /** Names of `logs.css`. */
  look: string;
}

interface Style {
  ink: number | null;
  paper: number | null;
  marks: Set<string>;
}

const MARKS: Record<number, string> = { 1: "bold", 2: "dim", 3: "italic", 4: "under", 7: "turned" };
const UNMARKS: Record<number, string[]> = { 22: ["bold", "dim"], 23: ["italic"], 24: ["under"], 27: ["turned"] };
const SEQUENCE = /\x1b\[([0-9;:]*)m/g;
/** What the server may have cut in the middle. */
const REST = /\x1b(?:\[[0-9;:]*)?/g;

export function spansOf(line: string): Span[] {
  const style: Style = { ink: null, paper: null, marks: new Set() };
  const spans: Span[] = [];
  let from = 0;
  const add = (until: number): void => {
    const text = line.slice(from, until).replace(REST, "");
    if (text) spans.push({ text, look: look(style) });
  };
  for (const found of line.matchAll(SEQUENCE)) {
    add(found.index);
    from = found.index + found[0].length;
    apply(style, found[1]!);
  }
  add(line.length);
  return spans;
}

/** The text without colours. */
export function plain(line: string): string {
  return line.replace(SEQUENCE, "").replace(REST, "");
}

/** A span in pieces; every second one is what is looked for. */
export function split(text: string, sought: string): string[] {
  if (!sought) return [text];
  const pieces: string[] = [];
  const low = text.toLowerCase();
  const wanted = sought.toLowerCase();
  let from = 0;
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, from)) {
    pieces.push(text.slice(from, at), text.slice(at, at + wanted.length));
    from = at + wanted.length;
  }
  return [...pieces, text.slice(from)];
}

function look({ ink, paper, marks }: Style): string {
  const names = [...marks];
  if (ink !== null) names.push(`ink${ink}`);
  if (paper !== null) names.push(`paper${paper}`);
  return names.join(" ");
}

function apply(style: Style, written: string): void {
  const codes = written.split(/[;:]/).map(Number);
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!;
    if (code === 0) Object.assign(style, { ink: null, paper: null, marks: new Set() });
    else if (MARKS[code]) style.marks.add(MARKS[code]);
    else if (UNMARKS[code]) for (const name of UNMARKS[code]) style.marks.delete(name);
    else if (code === 39) style.ink = null;
    else if (code === 49) style.paper = null;
    else if (code === 38 || code === 48) {
      const [colour, used] = chosen(codes.slice(i + 1));
      if (code === 38) style.ink = colour;
      else style.paper = colour;
      i += used;
    } else if (isIn(code, 30) || isIn(code, 90)) style.ink = code % 10;
    else if (isIn(code, 40) || isIn(code, 100)) style.paper = code % 10;
  }
}

function isIn(code: number, first: number): boolean {
  return code >= first && code <= first + 7;
}

/** One of 256 colours, or of millions, as the nearest of eight, which can be read in both themes; and the codes used. */
function chosen([kind, ...rest]: number[]): [number | null, number] {
  if (kind === 2) return [nearest(rest.slice(0, 3).map((part) => part / 255)), 4];
  if (kind !== 5) return [null, 1];
  const n = rest[0] ?? 0;
  if (n < 16) return [n % 8, 2];
  if (n >= 232) return [n < 244 ? 0 : 7, 2];
  const cube = n - 16;
  return [nearest([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((part) => part / 5)), 2];
}

/** Bits of red, green and blue, as terminals number their eight colours. */
function nearest(parts: number[]): number {
  const most = Math.max(...parts, 0.01);
  const bits = parts.map((part, i) => (part > 0.6 * most ? 1 << i : 0));
  return most < 0.25 ? 0 : bits.reduce((sum, bit) => sum + bit, 0);
}
