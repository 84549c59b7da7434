import { expect, test } from "vitest";
import type { TunedTrial } from "../types";
import { coordinates, share } from "./Parallel";

const trial = (number: number, losses: (number | null)[], rate = 0.1): TunedTrial => ({
  trial: number,
  hyperparameters: { learning_rate: rate },
  losses,
  epochs: losses.length,
  stopped: losses.length < 2,
  best: false,
});

test("there is an axis for what was drawn, and one for the loss after each stage", () => {
  const axes = coordinates([trial(1, [0.5, 0.4]), trial(2, [0.6])], { learning_rate: [0.001, 1] });
  expect(axes.map((axis) => axis.name)).toEqual(["learning rate", "loss, stage 1", "loss, stage 2"]);
  expect(axes[2]!.read(trial(2, [0.6]))).toBeNull();
  expect(share(axes[0]!, 0.001)).toBe(0);
  expect(share(axes[0]!, 1)).toBe(1);
});

test("of many stages a few are drawn, the first and the last among them, and a diverged trial has no place", () => {
  const many = Array.from({ length: 14 }, (_, i) => 1 / (i + 1));
  const axes = coordinates([trial(1, many), trial(2, [null])], { learning_rate: [0.001, 1] });
  expect(axes.map((axis) => axis.short)).toEqual(["learning rate", "loss 1", "loss 4", "loss 6", "loss 9", "loss 11", "loss 14"]);
  expect(axes[1]!.read(trial(2, [null]))).toBeNull();
});
