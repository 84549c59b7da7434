/** A line of a chart that can be moved: by a pointer, a finger, or keys. */

import type { ComponentChildren, JSX } from "preact";

/** One axis of a drawn chart: values to pixels of the chart, and back. */
export interface Along {
  upright: boolean;
  ends: [number, number];
  place: (value: number) => number;
  value: (pixel: number) => number;
}

interface Props {
  name: string;
  value: number;
  words: string;
  along: Along;
  /** Where the grip is. */
  grip: [number, number];
  line: string;
  /** `digits`: how many of the value mean something; a hand is coarser than a key. */
  onMove: (value: number, digits: number) => void;
  children: ComponentChildren;
}

export const GRIP = 13;
/** A fingertip. */
const FINGER = 22;
const BY_HAND = 3;
const BY_KEY = 4;
/** Of the whole axis, for each key. */
const STEPS: Record<string, number> = {
  ArrowUp: 0.01,
  ArrowRight: 0.01,
  ArrowDown: -0.01,
  ArrowLeft: -0.01,
  PageUp: 0.1,
  PageDown: -0.1,
  Home: -1,
  End: 1,
};

export function Handle({ name, value, words, along, grip, line, onMove, children }: Props): JSX.Element {
  const press = (event: KeyboardEvent): void => {
    const step = STEPS[event.key];
    if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    onMove(stepped(value, step, along), BY_KEY);
  };
  const hold = (event: JSX.TargetedPointerEvent<SVGGElement>): void => {
    event.preventDefault();
    event.currentTarget.setPointerCapture(event.pointerId);
    event.currentTarget.focus({ preventScroll: true });
  };
  const move = (event: JSX.TargetedPointerEvent<SVGGElement>): void => {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
    const from = event.currentTarget.ownerSVGElement!.getBoundingClientRect();
    const pixel = along.upright ? event.clientY - from.top : event.clientX - from.left;
    onMove(within(along.value(pixel), along.ends), BY_HAND);
  };
  return (
    <g
      class={along.upright ? "drag up" : "drag across"}
      role="slider"
      tabindex={0} // of SVG: its attributes have no capitals
      aria-label={`${name}, on the chart`}
      aria-orientation={along.upright ? "vertical" : "horizontal"}
      aria-valuemin={along.ends[0]}
      aria-valuemax={along.ends[1]}
      aria-valuenow={within(value, along.ends)}
      aria-valuetext={words}
      onKeyDown={press}
      onPointerDown={hold}
      onPointerMove={move}
    >
      <path class="reach" d={line} />
      <path class="limit" d={line} />
      <circle class="finger" cx={grip[0]} cy={grip[1]} r={FINGER} />
      <circle class="halo" cx={grip[0]} cy={grip[1]} r={GRIP - 1} />
      <circle class="grip" cx={grip[0]} cy={grip[1]} r={GRIP - 5} />
      {children}
    </g>
  );
}

/** By a share of the axis as it is drawn: even steps on a logarithmic one, too. */
export function stepped(value: number, share: number, { ends, place, value: at }: Along): number {
  const [from, to] = [place(ends[0]), place(ends[1])];
  return within(at(place(within(value, ends)) + share * (to - from)), ends);
}

function within(value: number, [low, high]: [number, number]): number {
  return Math.min(high, Math.max(low, value));
}
