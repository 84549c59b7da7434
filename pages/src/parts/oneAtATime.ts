/** Asks now, or once more after what is under way: never two at once, and who asked last is answered. */
export function oneAtATime(ask: () => Promise<void>): () => void {
  let busy = false;
  let again = false;
  const turn = (): void => {
    again = busy;
    if (busy) return;
    busy = true;
    void ask().finally(() => {
      busy = false;
      if (again) turn();
    });
  };
  return turn;
}
