/** The pages of MLCD: sign-in and routing. */

import { render } from "preact";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { SIGNED_OUT } from "./api";
import { useGet } from "./live";
import Models from "./pages/Models";
import News from "./pages/News";
import NotFound from "./pages/NotFound";
import Offers from "./pages/Offers";
import Runs from "./pages/Runs";
import SignIn from "./pages/SignIn";
import Submit from "./pages/Submit";
import Team from "./pages/Team";
import Tokens from "./pages/Tokens";
import Workers from "./pages/Workers";
import { lazyPage } from "./parts/lazyPage";
import { Layout } from "./parts/Layout";
import { may, MeContext, useMe } from "./parts/me";
import { Loading, Notice } from "./parts/Notice";
import { go, match, usePlace } from "./parts/router";
import type { Me } from "./types";
import "./style.css";

const Run = lazyPage(() => import("./pages/Run"));
const Compare = lazyPage(() => import("./pages/Compare"));
const Explore = lazyPage(() => import("./pages/Explore"));

function App(): JSX.Element {
  const { path } = usePlace();
  const { data: me, error, refresh } = useGet<Me>("/me");
  const [signedOut, setSignedOut] = useState(false);
  useEffect(() => {
    const leave = (): void => setSignedOut(true);
    window.addEventListener(SIGNED_OUT, leave);
    return () => window.removeEventListener(SIGNED_OUT, leave);
  }, []);
  useEffect(() => {
    if (path.startsWith("/sign-in") && me !== null && !signedOut) go("/", true); // nothing to do there
  }, [path, me, signedOut]);
  const enter = (): void => {
    setSignedOut(false);
    refresh();
  };
  if (signedOut) return <SignIn onEnter={enter} />;
  if (me === null) {
    return (
      <main class="alone">{error ? <Notice tone="bad">{error.message}</Notice> : <Loading what="your account" />}</main>
    );
  }
  return (
    <MeContext.Provider value={{ me, refresh }}>
      <Layout>
        <Content path={path} />
      </Layout>
    </MeContext.Provider>
  );
}

function Content({ path }: { path: string }): JSX.Element {
  const me = useMe();
  const run = match("/runs/:run", path)?.["run"];
  const explored = match("/runs/:run/explore", path)?.["run"];
  if (run) return <Run key={run} run={run} />;
  if (explored) return <Explore key={explored} run={explored} />;
  if (path === "/" || path === "/runs") return <Runs />;
  if (path === "/compare") return <Compare />;
  if (path === "/submit") return <Submit />;
  if (path === "/offers") return <Offers />;
  if (path === "/models") return <Models />;
  if (path === "/team" && me.mode === "service" && may(me, "admin")) return <Team />;
  if (path === "/workers" && me.mode === "service") return <Workers />;
  if (path === "/news" && me.mode === "service") return <News />;
  if (path === "/tokens" && me.mode === "service") return <Tokens />;
  return <NotFound path={path} />;
}

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
