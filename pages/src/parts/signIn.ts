/** The way to a provider that signs members in, and back. */

/** Where the provider sends the browser back to. */
export const RETURN = "/sign-in/callback";
const AIM = "mlcd:aim";
const WORDS = ["state", "code", "iss", "error"] as const;

export type Answer = Partial<Record<(typeof WORDS)[number], string>>;

/** What the provider put into the address, which is cleared of it; null if this is not the way back. */
export function returned(): Answer | null {
  if (location.pathname !== RETURN) return null;
  const query = new URLSearchParams(location.search);
  history.replaceState(null, "", RETURN); // a code is used once, and belongs into no history
  return answerIn(query);
}

/** The words of an answer, without what else is in an address. */
export function answerIn(query: URLSearchParams): Answer {
  const answer: Answer = { state: "" };
  for (const word of WORDS) {
    const said = query.get(word);
    if (said !== null) answer[word] = said;
  }
  return answer;
}

/** A page of ours: never an address of another site, whoever put it there. */
export function ours(path: string | null): string {
  const isOurs = path !== null && /^\/(?![/\\])/.test(path) && !path.startsWith("/sign-in");
  return isOurs ? path : "/";
}

/** Where somebody was when they were sent to sign in; kept in this tab alone. */
export const aim = {
  keep(): void {
    sessionStorage.setItem(AIM, location.pathname + location.search);
  },
  take(): string {
    const kept = sessionStorage.getItem(AIM);
    sessionStorage.removeItem(AIM);
    return ours(kept);
  },
};
