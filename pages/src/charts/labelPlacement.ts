/** Finds places for labels that cover neither marks nor each other. */

export type Box = [left: number, top: number, right: number, bottom: number];

/** Pixels of a character of a label, on average. */
export const CHARACTER = 6.3;

export interface Spot {
  x: number;
  y: number;
  anchor: "start" | "middle" | "end";
}

/** Pixels of a grid cell: only nearby boxes are compared, so that a thousand marks are fast. */
const CELL = 40;

export class LabelPlacer {
  private readonly taken = new Map<number, Box[]>();

  constructor(private readonly within: Box) {}

  take(box: Box): void {
    for (const cell of cells(box)) {
      const there = this.taken.get(cell);
      if (there) there.push(box);
      else this.taken.set(cell, [box]);
    }
  }

  /** Take a line from corner to corner, in small boxes along it. */
  takeLine(corners: [number, number][]): void {
    corners.slice(1).forEach(([x, y], i) => {
      const [fromX, fromY] = corners[i]!;
      const steps = Math.max(1, Math.ceil(Math.hypot(x - fromX, y - fromY) / 6));
      for (let step = 0; step <= steps; step++) {
        const atX = fromX + ((x - fromX) * step) / steps;
        const atY = fromY + ((y - fromY) * step) / steps;
        this.take([atX - 2, atY - 2, atX + 2, atY + 2]);
      }
    });
  }

  free(box: Box): boolean {
    const [left, top, right, bottom] = box;
    const [l, t, r, b] = this.within;
    if (left < l || top < t || right > r || bottom > b) return false;
    const apart = ([tl, tt, tr, tb]: Box): boolean => right <= tl || left >= tr || bottom <= tt || top >= tb;
    return cells(box).every((cell) => this.taken.get(cell)?.every(apart) ?? true);
  }

  /** A place for words beside a point: right, left, above, below, and the corners; null if all are taken. */
  label(x: number, y: number, words: string, gap = 9): Spot | null {
    return this.around(x, y, words, gap) ?? this.around(x, y, words, gap + 12);
  }

  private around(x: number, y: number, words: string, gap: number): Spot | null {
    const wide = CHARACTER * words.length + 2;
    const corner = 0.7 * gap;
    const spots: [Spot, Box][] = [];
    for (const [dx, dy] of [
      [gap, 0],
      [-gap, 0],
      [0, -gap - 5],
      [0, gap + 6],
      [corner, -corner - 3],
      [-corner, -corner - 3],
      [corner, corner + 4],
      [-corner, corner + 4],
    ] as const) {
      const anchor = dx > 0 ? "start" : dx < 0 ? "end" : "middle";
      const left = anchor === "start" ? x + dx : anchor === "end" ? x + dx - wide : x - wide / 2;
      spots.push([{ x: x + dx, y: y + dy + 4, anchor }, [left, y + dy - 7, left + wide, y + dy + 7]]);
    }
    const found = spots.find(([, box]) => this.free(box));
    if (!found) return null;
    this.take(found[1]);
    return found[0];
  }
}

/** The numbers of the cells that a box lies on. Two cells may share one: it only takes a look more. */
function cells([left, top, right, bottom]: Box): number[] {
  const found: number[] = [];
  for (let x = Math.floor(left / CELL); x * CELL <= right; x++)
    for (let y = Math.floor(top / CELL); y * CELL <= bottom; y++) found.push(1_000 * x + y);
  return found;
}
