import { expect, test } from "vitest";
import { type Along, stepped } from "./Handle";

const plain: Along = { upright: false, ends: [10, 20], place: (v) => 50 + 30 * v, value: (p) => (p - 50) / 30 };
const log: Along = {
  upright: true,
  ends: [1, 10_000],
  place: (v) => 400 - 100 * Math.log10(v),
  value: (p) => 10 ** ((400 - p) / 100),
};

test("a key moves a limit by a share of its axis, evenly on a logarithmic one", () => {
  expect(stepped(12, 0.01, plain)).toBeCloseTo(12.1);
  expect(stepped(12, -0.1, plain)).toBeCloseTo(11);
  expect(stepped(100, 0.25, log)).toBeCloseTo(1000);
  expect(stepped(100, -0.25, log)).toBeCloseTo(10);
});

test("Home and End go to the ends, and nothing goes beyond them", () => {
  for (const along of [plain, log]) {
    expect(stepped(15, -1, along)).toBeCloseTo(along.ends[0]);
    expect(stepped(15, 1, along)).toBeCloseTo(along.ends[1]);
    expect(stepped(1e9, 0.01, along)).toBeCloseTo(along.ends[1]);
  }
});
