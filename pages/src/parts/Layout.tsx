import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { send } from "../api";
import { day, usd } from "../format";
import type { Me } from "../types";
import { ANNOUNCEMENTS_ID } from "./announce";
import { useKeys } from "./keys";
import { KeysHelp } from "./KeysHelp";
import { may, useMe } from "./me";
import { go, Link, usePlace } from "./router";
import { useTheme } from "./theme";

const PAGES = [
  { to: "/", name: "Runs" },
  { to: "/submit", name: "Submit" },
  { to: "/offers", name: "Offers" },
  { to: "/models", name: "Models" },
] as const;

/** The frame of every page: the bar at the top, the content, the news. */
export function Layout({ children }: { children: ComponentChildren }): JSX.Element {
  const me = useMe();
  const [helps, setHelps] = useState(false);
  useKeys({
    n: () => go("/submit"),
    r: () => go("/"),
    "?": () => setHelps(true),
    "/": () => document.querySelector<HTMLElement>("[data-filter]")?.focus(),
  });
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="bar">
        <div class="bar-inside">
          <Link to="/" class="brand" aria-label="MLCD, all runs">
            <Logo />
            MLCD
          </Link>
          <Navigation me={me} />
          <Who me={me} />
          <ThemeSwitch />
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      <footer class="foot">
        <span>MLCD {me.version}</span>
        <span>{me.mode === "ui" ? "this machine's ledger" : "the team's ledger"}</span>
        <span class="keys">
          <kbd>/</kbd> filter <kbd>n</kbd> submit{" "}
          <button type="button" class="linked" onClick={() => setHelps(true)}>
            all keys
          </button>
        </span>
        <a href="/api/v1/openapi.json">API</a>
      </footer>
      {helps && <KeysHelp onClose={() => setHelps(false)} />}
      <div id={ANNOUNCEMENTS_ID} class="unseen" role="status" aria-live="polite" />
    </>
  );
}

function Navigation({ me }: { me: Me }): JSX.Element {
  const { path } = usePlace();
  const ofService = me.mode === "service" ? [{ to: "/workers", name: "Workers" }] : [];
  const ofAdmins = me.mode === "service" && may(me, "admin") ? [{ to: "/team", name: "Team" }] : [];
  const shown = [...PAGES, ...ofService, ...ofAdmins];
  return (
    <nav aria-label="Pages">
      {shown.map(({ to, name }) => {
        const at = to === "/" ? path === "/" || path.startsWith("/runs") || path === "/compare" : path.startsWith(to);
        return (
          <Link key={to} to={to} aria-current={at ? "page" : undefined}>
            {name}
          </Link>
        );
      })}
    </nav>
  );
}

function Who({ me }: { me: Me }): JSX.Element | null {
  if (me.name === null) return null;
  const leave = (): void => {
    void send("DELETE", "/session").finally(() => location.assign("/sign-in"));
  };
  const shut = (event: JSX.TargetedEvent<HTMLDetailsElement, KeyboardEvent | FocusEvent>): void => {
    const away = event instanceof FocusEvent && !event.currentTarget.contains(event.relatedTarget as Node | null);
    if (away || (event instanceof KeyboardEvent && event.key === "Escape")) event.currentTarget.open = false;
  };
  return (
    <details class="who" onKeyDown={shut} onFocusOut={shut}>
      <summary>
        <span class="who-name">{me.name}</span>
        {me.left_usd !== null && <span class="who-left">{usd(me.left_usd)} left</span>}
      </summary>
      <div class="who-more">
        <p>
          {me.role}
          {me.team !== null && ` in ${me.team}`}
        </p>
        <p>
          {me.left_usd === null ? "No spending limit." : `${usd(me.left_usd)} left`}
          {me.left_usd !== null && me.budget_usd !== null && ` of ${usd(me.budget_usd)}`}
          {me.left_usd !== null && me.renewed_on && `, renewed ${day(me.renewed_on)}`}
        </p>
        <p>
          <Link to="/tokens">Your tokens</Link>
        </p>
        <p>
          <Link to="/news">News</Link>
        </p>
        <button type="button" class="button" onClick={leave}>
          Sign out
        </button>
      </div>
    </details>
  );
}

function ThemeSwitch(): JSX.Element {
  const [theme, turn] = useTheme();
  const words = theme === "system" ? "as the system" : theme;
  return (
    <button
      type="button"
      class="theme"
      onClick={turn}
      title={`Theme: ${words}`}
      aria-label={`Theme: ${words}. Change it.`}
    >
      <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
        {theme === "light" && <Sun />}
        {theme === "dark" && <path d="M16 12.200A6.8 6.8 0 0 1 7.8 4 6.8 6.8 0 1 0 16 12.200Z" fill="currentColor" />}
        {theme === "system" && (
          <>
            <circle cx="10" cy="10" r="6.5" fill="none" stroke="currentColor" stroke-width="1.5" />
            <path d="M10 3.500a6.5 6.5 0 0 1 0 13Z" fill="currentColor" />
          </>
        )}
      </svg>
    </button>
  );
}

function Sun(): JSX.Element {
  return (
    <>
      <circle cx="10" cy="10" r="3.4" fill="currentColor" />
      <path
        d="M10 2v2M10 16v2M2 10h2M16 10h2M4.3 4.300l1.4 1.400M14.3 14.300l1.4 1.400M4.3 15.700l1.4-1.400M14.3 5.700l1.4-1.4"
        stroke="currentColor"
        stroke-width="1.6"
        stroke-linecap="round"
      />
    </>
  );
}

export function Logo(): JSX.Element {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <rect width="32" height="32" rx="7" class="logo-ground" />
      <path d="M6 25C10 25 9 17 14 17s4-9 12-10" class="logo-line" />
      <circle cx="7" cy="24" r="2.6" />
      <circle cx="14" cy="17" r="2.6" />
      <circle cx="25" cy="7.5" r="4" />
    </svg>
  );
}
