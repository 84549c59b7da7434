import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { line, send } from "../api";
import { Field } from "../parts/Field";
import { Logo } from "../parts/Layout";
import { useTab } from "../parts/tab";

/** Exchanges a token for a cookie that scripts cannot read. */
export default function SignIn({ onEnter }: { onEnter: () => void }): JSX.Element {
  const [token, setToken] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  useTab({ title: "Sign in", icon: "" });
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
    <main class="alone">
      <form class="card sign-in" onSubmit={(event) => void enter(event)}>
        <Logo />
        <h1>Sign in to MLCD</h1>
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
    </main>
  );
}
