/** The output of a run's jobs, live: searched, coloured, by launch, process and rank; and what the machines did. */

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { runPath, withQuery } from "../../../api";
import { duration, instant } from "../../../format";
import { useGet } from "../../../live";
import { Notice } from "../../../parts/Notice";
import type { LogLine, LogParts, MachineUsage } from "../../../types";
import { type Source, useLogWindow } from "./useLogWindow";
import { firstError, useLogSearch } from "./useLogSearch";
import { Text } from "./Text";
import { Tools } from "./Tools";
import { Usage } from "./Usage";
import { writtenAt } from "./window";
import "./logs.css";

const NEAR_END_PX = 60;
const USAGE_EVERY_MS = 10_000;

/** `driven`: the run is active, so another launch may follow. */
export function Logs({ run, driven }: { run: string; driven: boolean }): JSX.Element {
  const [chosen, setChosen] = useState<Omit<Source, "run">>({ launch: null, process: 0, rank: null, reports: false });
  const source: Source = { run, ...chosen };
  const { shown, error, above, below, goTo } = useLogWindow(source, driven);
  const [follows, setFollows] = useState(true);
  const [text, setText] = useState("");
  const [said, setSaid] = useState("");
  const [here, setHere] = useState<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const launch = chosen.launch ?? shown?.launch ?? null;
  const parts = useParts(run, launch, chosen.process, shown?.size ?? 0);
  const usage = useUsage(run, launch, driven);
  const [wanted, setWanted] = useState<number | null>(null);
  const go = (at: number): void => {
    setFollows(false);
    setHere(at);
    setWanted(at);
    void goTo(at);
  };
  const searched = useLogSearch({ ...source, launch }, text, shown?.size ?? 0, go);
  useScrolled(box, shown?.lines, follows, wanted, () => setWanted(null));

  const onScroll = (): void => {
    if (!box.current || wanted !== null) return;
    const { scrollHeight, scrollTop, clientHeight } = box.current;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR_END_PX;
    if (scrollTop < NEAR_END_PX && !isAtEnd) void above();
    if (isAtEnd) void below();
    setFollows(isAtEnd && !shown?.more); // do not scroll a reader who has scrolled up
  };
  const toEnd = (): void => {
    setHere(null);
    setFollows(true);
    void goTo("end");
  };
  const toError = async (): Promise<void> => {
    const at = await firstError({ ...source, launch }).catch(() => null);
    setSaid(at === null ? "No error is found." : "");
    if (at !== null) go(at);
  };
  const points = usage?.points ?? [];
  const when = (line: LogLine): string => {
    const found = writtenAt(points, chosen.process, line.at);
    return found ? duration(found[1]) : "";
  };
  const at = here !== null ? writtenAt(points, chosen.process, here) : null;
  return (
    <>
      {error !== null && <Notice>{error}</Notice>}
      {shown !== null && (
        <>
          <Tools
            source={{ ...source, launch }}
            parts={parts}
            onChoose={(change) => {
              setChosen((before) => ({ ...before, ...change }));
              setFollows(true);
              setHere(null);
            }}
            text={text}
            onText={setText}
            searched={searched}
            follows={follows}
            onFollow={() => (follows ? setFollows(false) : toEnd())}
            onError={() => void toError()}
          />
          <p class="unseen" role="status">
            {said || searched.words}
          </p>
          {said && <p class="hint">{said}</p>}
          <Text
            lines={shown.lines}
            sought={text}
            current={here}
            when={when}
            ranked={parts !== null && parts.ranks.length > 1 && chosen.rank === null}
            box={box}
            onScroll={onScroll}
          />
          {usage?.began_at && (
            <p class="hint log-times">
              {parts !== null && parts.ranks.length > 1 && chosen.rank === null && "At the left, the time and the rank. "}
              Times are counted from {instant(usage.began_at)}: by then a line was there.
            </p>
          )}
          {usage !== null && <Usage of={usage} at={at?.[1] ?? null} />}
        </>
      )}
    </>
  );
}

/** Which logs there are; asked again when another log is read, or has grown from nothing. */
function useParts(run: string, launch: number | null, process: number, size: number): LogParts | null {
  const path = launch === null ? null : withQuery(runPath(run, "/logs/parts"), { launch, process });
  const got = useGet<LogParts>(path);
  useEffect(() => {
    if (size > 0) got.refresh();
  }, [size > 0]);
  return got.data;
}

function useUsage(run: string, launch: number | null, driven: boolean): MachineUsage | null {
  const got = useGet<MachineUsage>(launch === null ? null : withQuery(runPath(run, "/usage"), { launch }));
  useEffect(() => {
    if (!driven) return undefined;
    const timer = setInterval(got.refresh, USAGE_EVERY_MS);
    return () => clearInterval(timer);
  }, [driven, got.refresh]);
  return got.data;
}

/** Keeps the reader where they are: at the end, at the line they asked for, or at the line that they were reading. */
function useScrolled(
  box: { current: HTMLDivElement | null },
  lines: LogLine[] | undefined,
  follows: boolean,
  wanted: number | null,
  onArrived: () => void,
): void {
  const before = useRef<{ at: string; top: number } | null>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const row = wanted === null ? null : element.querySelector<HTMLElement>(`[data-at="${wanted}"]`);
    const kept = before.current && element.querySelector<HTMLElement>(`[data-at="${before.current.at}"]`);
    if (row) {
      element.scrollTop = row.offsetTop - element.clientHeight / 3;
      row.scrollIntoView({ block: "nearest", inline: "nearest" }); // the page, too
      onArrived();
    } else if (follows) element.scrollTop = element.scrollHeight;
    else if (kept) element.scrollTop += kept.offsetTop - before.current!.top;
  }, [lines, follows, wanted]);
  useLayoutEffect(() => {
    const element = box.current;
    const note = (): void => {
      before.current = element && rowAtTop(element);
    };
    note();
    element?.addEventListener("scroll", note, { passive: true });
    return () => element?.removeEventListener("scroll", note);
  });
}

/** All lines are of the same height. */
function rowAtTop(element: HTMLElement): { at: string; top: number } | null {
  const height = (element.firstElementChild as HTMLElement | null)?.offsetHeight ?? 0;
  const row = height > 0 ? element.children[Math.ceil(element.scrollTop / height)] : null;
  const at = row instanceof HTMLElement ? row.dataset["at"] : undefined;
  return at === undefined ? null : { at, top: (row as HTMLElement).offsetTop };
}
