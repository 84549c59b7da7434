import { expect, test } from "vitest";
import { oneAtATime } from "./oneAtATime";

test("however often is asked, one is under way, none is cut short, and the last is answered", async () => {
  const answers: (() => void)[] = [];
  let under = 0;
  const turn = oneAtATime(async () => {
    expect(++under).toBe(1);
    await new Promise<void>((resolve) => answers.push(resolve));
    under--;
  });
  for (let i = 0; i < 5; i++) turn();
  expect(answers.length).toBe(1);
  answers[0]!();
  await expect.poll(() => answers.length).toBe(2); // the four others are one
  answers[1]!();
  await expect.poll(() => under).toBe(0);
  turn();
  expect(answers.length).toBe(3);
});
