/** Follows a log: joins the pieces that the server sends. */

/** Characters that are kept on the page. */
export const MOST = 200_000;

export interface Piece {
  launch: number;
  text: string;
  next: number;
  done: boolean;
}

/** What was read so far; `next`: the byte from which the next piece is asked for. */
export type Log = Omit<Piece, "launch"> & { launch: number | null };

export const UNREAD: Log = { launch: null, text: "", next: 0, done: false };

/**
 * The log with one more piece. When a newer launch has begun, the piece is left: it was asked for from where the old
 * launch ended, so the new one is read from its beginning, below what is there.
 */
export function withPiece(log: Log, piece: Piece): Log {
  if (log.launch === null || log.launch === piece.launch) {
    return { ...piece, text: (log.text + piece.text).slice(-MOST) };
  }
  const above = log.text && `${log.text.trimEnd()}\n\n— Launch ${piece.launch} —\n`;
  return { launch: piece.launch, text: above, next: 0, done: false };
}
