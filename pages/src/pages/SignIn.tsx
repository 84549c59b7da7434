import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { line, send } from "../api";
import { useGet } from "../live";
import { Field } from "../parts/Field";
import { Logo } from "../parts/Layout";
import { Notice } from "../parts/Notice";
import { go, usePlace } from "../parts/router";
import { aim, RETURN, returned } from "../parts/signIn";
import { useTab } from "../parts/tab";
import type { Health } from "../types";

/** Exchanges a token, or what the team's provider says, for a cookie that scripts cannot read. */
export default function SignIn({ onEnter }: { onEnter: () => void }): JSX.Element {
  const { path } = usePlace();
  const { data: service, error } = useGet<Health>("/health");
  const [refused, setRefused] = useState<string | null>(null);
  const [busy, setBusy] = useState(path === RETURN);
  useTab({ title: "Sign in", icon: "" });
  useEffect(() => {
    const answer = returned();
    if (answer === null) return;
    send("POST", "/sign-in/callback", answer)
      .then(() => {
        go(aim.take(), true);
        onEnter();
      })
      .catch((why: unknown) => {
        setRefused(line(why));
        setBusy(false);
      });
  }, []);
  const leave = async (): Promise<void> => {
    setBusy(true);
    setRefused(null);
    try {
      const { url } = await send<{ url: string }>("POST", "/sign-in");
      aim.keep();
      location.assign(url);
    } catch (why) {
      setRefused(line(why));
      setBusy(false);
    }
  };
  const provider = service?.provider ?? null;
  return (
    <main class="alone">
      <div class="card sign-in">
        <Logo />
        <h1>Sign in to MLCD</h1>
        {(refused ?? error?.message) && <Notice tone="bad">{refused ?? error?.message}</Notice>}
        {provider !== null && (
          <>
            <button type="button" class="button primary" disabled={busy} onClick={() => void leave()}>
              {busy ? "Signing in …" : `Sign in with ${provider}`}
            </button>
            <details class="more">
              <summary>Sign in with a token</summary>
              <WithToken onEnter={onEnter} />
            </details>
          </>
        )}
        {service !== null && provider === null && <WithToken onEnter={onEnter} />}
      </div>
    </main>
  );
}

function WithToken({ onEnter }: { onEnter: () => void }): JSX.Element {
  const [token, setToken] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const enter = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await send("POST", "/session", { token: token.trim() });
      onEnter();
    } catch (refused) {
      setError(line(refused));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void enter(event)}>
      <Field
        label="Token"
        error={error}
        hint={
          <>
            Ask an admin for it: <code>mlcd team token NAME</code>
          </>
        }
      >
        <input
          type="password"
          autocomplete="current-password"
          spellcheck={false}
          autoFocus
          required
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </Field>
      <button type="submit" class="button primary" disabled={busy || token.trim() === ""}>
        {busy ? "Signing in …" : "Sign in"}
      </button>
    </form>
  );
}
