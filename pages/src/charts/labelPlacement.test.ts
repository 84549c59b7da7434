import { expect, test } from "vitest";
import { type Box, CHARACTER, LabelPlacer } from "./labelPlacement";

test("labels cover neither marks nor each other, and a full room says no", () => {
  const room = new LabelPlacer([0, 0, 200, 60]);
  room.take([95, 25, 105, 35]);
  const words = "2 x g6";
  const taken: Box[] = [[95, 25, 105, 35]];
  for (let i = 0; i < 40; i++) {
    const spot = room.label(100, 30, words);
    if (spot === null) {
      expect(i).toBeGreaterThan(2);
      return;
    }
    const wide = CHARACTER * words.length;
    const left = spot.anchor === "start" ? spot.x : spot.anchor === "end" ? spot.x - wide : spot.x - wide / 2;
    const box: Box = [left, spot.y - 10, left + wide, spot.y + 2];
    for (const [l, t, r, b] of taken) expect(box[2] <= l || box[0] >= r || box[3] <= t || box[1] >= b).toBe(true);
    expect(box[0] >= 0 && box[2] <= 200).toBe(true);
    taken.push(box);
  }
  throw new Error("a room of 200 by 60 pixels cannot hold 40 labels");
});

test("a box is free if it covers nothing taken, wherever the cells end", () => {
  const random = numbers(1);
  const box = (): Box => {
    const [left, top] = [random() * 900, random() * 900];
    return [left, top, left + random() * 90, top + random() * 90];
  };
  const room = new LabelPlacer([0, 0, 1000, 1000]);
  const taken: Box[] = [];
  for (let i = 0; i < 400; i++) {
    const asked = box();
    const covers = ([l, t, r, b]: Box): boolean => asked[2] > l && asked[0] < r && asked[3] > t && asked[1] < b;
    expect(room.free(asked)).toBe(!taken.some(covers));
    if (i % 4 === 0) {
      room.take(asked);
      taken.push(asked);
    }
  }
});

/** The same numbers every time. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647;
}
