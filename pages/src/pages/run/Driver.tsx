/** Why a run is waiting: its position in the queue, no worker, or a worker without heartbeat. */

import type { JSX } from "preact";
import { runPath } from "../../api";
import { useEvery, useGet } from "../../live";
import { Notice } from "../../parts/Notice";
import { Link } from "../../parts/router";
import type { DriverAnswer } from "../../types";

const LOOK_AGAIN_MS = 3_000;

export function Driver({ run }: { run: string }): JSX.Element | null {
  const { data, refresh } = useGet<DriverAnswer>(runPath(run, "/driver"));
  useEvery(refresh, LOOK_AGAIN_MS);
  if (data === null || (data.state !== "waits" && data.state !== "silent")) return null;
  const isTurn = data.state === "waits" && data.words.startsWith("waits");
  return (
    <Notice tone={isTurn ? "plain" : "bad"}>
      {sentence(data.words)} <Link to="/workers">Workers and queue</Link>
    </Notice>
  );
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}
