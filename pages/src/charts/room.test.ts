import { expect, test } from "vitest";
import { type Box, CHARACTER, Room } from "./room";

test("labels cover neither marks nor each other, and a full room says no", () => {
  const room = new Room([0, 0, 200, 60]);
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
