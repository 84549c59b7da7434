/** Runs a task now, or once more after the running one: never two at once, and the last request is served. */
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
