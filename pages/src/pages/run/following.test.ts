import { describe, expect, test } from "vitest";
import { type Log, MOST, type Piece, UNREAD, withPiece } from "./following";

const FIRST: Piece = { launch: 1, text: "probing\n", next: 8, done: true };

function read(...pieces: Piece[]): Log {
  return pieces.reduce(withPiece, UNREAD);
}

describe("a log that is followed", () => {
  test("grows by what comes, and is asked for from there on", () => {
    const more = { launch: 1, text: "ends\n", next: 13, done: true };
    expect(read({ ...FIRST, done: false }, more)).toEqual({ ...more, text: "probing\nends\n" });
  });

  test("is read from the beginning of a newer launch, below what the old one wrote", () => {
    const middle = { launch: 2, text: "g\n", next: 10, done: true };
    const turned = read(FIRST, middle);
    expect(turned).toEqual({ launch: 2, text: "probing\n\n— Launch 2 —\n", next: 0, done: false });
    const whole = { launch: 2, text: "training\n", next: 9, done: true };
    expect(withPiece(turned, whole).text).toBe("probing\n\n— Launch 2 —\ntraining\n");
  });

  test("of launches that wrote nothing says nothing", () => {
    const silent = { launch: 1, text: "", next: 0, done: false };
    expect(read(silent, { ...silent, launch: 2 }).text).toBe("");
  });

  test("that is long keeps its end", () => {
    const { text } = read({ ...FIRST, text: "a".repeat(MOST) }, { ...FIRST, text: "the end" });
    expect([text.length, text.slice(-7)]).toEqual([MOST, "the end"]);
  });
});
