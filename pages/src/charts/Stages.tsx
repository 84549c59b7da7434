/** The stages of a tuning run in each method's plan: cost of a trial, cost of a stage, and when it ends. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { duration, usd, whole } from "../format";
import type { Plan, Stage } from "../types";
import { Figure } from "./Figure";
import { colour, outline } from "./marks";
import { add, type Draw, type Drawn, lineOf, plotted } from "./plotFrame";
import { Segments } from "./Segments";
import { spread, ticks, timeTick, timeTicks, usdTick } from "./ticks";

const READINGS = {
  trial: {
    name: "cost of a trial",
    of: (plan: Plan) => plan.stages.map((stage) => stage.usd / Math.max(1, stage.trials)),
  },
  stage: { name: "cost of a stage", of: (plan: Plan) => plan.stages.map((stage) => stage.usd) },
  time: { name: "time to its end", of: endings },
};
export type Reading = keyof typeof READINGS;

const NOTES: Record<Reading, string> = {
  trial:
    "The cost of one trial in each stage. Most trials of early stages are stopped, so money spent on them is mostly lost.",
  stage: "The cost of all trials of a stage together.",
  time: "The time from the start of the run to the end of each stage.",
};

/** `first`: what goes up at first. */
export function Stages({ plans, first = "trial" }: { plans: Plan[]; first?: Reading }): JSX.Element {
  const [reading, setReading] = useState<Reading>(first);
  const chosen = plans.find((plan) => plan.chosen);
  const several = (chosen ?? plans[0])!.stages.length;
  return (
    <Figure
      title="Stages of each plan"
      summary={`${plans.length} plans of ${several} stages.${chosen ? ` The chosen one, ${chosen.name}, takes ${duration(chosen.seconds)} and ${usd(chosen.usd)}.` : ""}`}
      note={NOTES[reading]}
      keys={plans.map((plan, i) => ({
        mark: <path d={outline(i, 4.6)} fill={colour(i)} />,
        words: plan.chosen ? `${plan.name}, chosen` : plan.name,
      }))}
      table={{
        head: ["Plan and stage", "Trials", "Allocation", "Time", "Cost", "Cost of a trial"],
        rows: plans.flatMap((plan) =>
          plan.stages.map((stage) => [
            `${plan.name}, ${stage.stage}`,
            whole(stage.trials),
            allocation(stage),
            duration(stage.seconds),
            usd(stage.usd),
            usd(stage.usd / Math.max(1, stage.trials)),
          ]),
        ),
      }}
      draw={(width) => drawn(width, plans, reading)}
      of={[plans, reading]}
      switches={
        <Segments
          label="Vertical axis"
          of={Object.keys(READINGS) as Reading[]}
          chosen={reading}
          onChoose={setReading}
          name={(each) => READINGS[each].name}
        />
      }
    />
  );
}

export function allocation(stage: Pick<Stage, "functions" | "memory_mb" | "storage">): string {
  return `${whole(stage.functions)} x ${stage.memory_mb} MB, ${stage.storage}`;
}

function endings(plan: Plan): number[] {
  let so_far = 0;
  return plan.stages.map((stage) => (so_far += stage.seconds));
}

function drawn(width: number, plans: Plan[], reading: Reading): Drawn {
  const values = plans.flatMap(READINGS[reading].of);
  const up = spread([0, ...values], false);
  const stages = plans[0]!.stages;
  const every = Math.ceil(stages.length / (width >= 560 ? 14 : 6));
  return plotted(
    width,
    width >= 560 ? 300 : 260,
    {
      domain: [0.7, stages.length + 0.3],
      ticks: stages.map((_, i) => i + 1).filter((n) => (n - 1) % every === 0),
      format: (n) => whole(stages[n - 1]?.trials ?? 0),
      label: "trials in the stage",
    },
    {
      domain: up,
      ticks: reading === "time" ? timeTicks(up, 5) : ticks(up, 5),
      format: reading === "time" ? timeTick : usdTick,
      label: READINGS[reading].name,
    },
    [lines(plans, reading)],
    plans.flatMap((plan) =>
      READINGS[reading].of(plan).map((value, i) => ({
        x: i + 1,
        y: value,
        words: `${plan.name}, stage ${i + 1}: ${whole(plan.stages[i]!.trials)} trials\n${allocation(plan.stages[i]!)}\n${duration(plan.stages[i]!.seconds)}, ${usd(plan.stages[i]!.usd)}`,
      })),
    ),
    62,
  );
}

/** The chosen one last, so that it lies on top. */
function lines(plans: Plan[], reading: Reading): Draw {
  return (group, at) => {
    const order = plans
      .map((plan, index) => ({ plan, index }))
      .sort((a, b) => Number(a.plan.chosen) - Number(b.plan.chosen));
    for (const { plan, index } of order) {
      const beside = 7 * (index - (plans.length - 1) / 2); // plans that agree would hide each other
      const points = READINGS[reading]
        .of(plan)
        .map((value, i): [number, number] => [at.x(i + 1) + beside, at.y(value)]);
      add(group, "path", {
        d: lineOf(points),
        class: plan.chosen ? "thread solid strong" : "thread solid",
        stroke: colour(index),
      });
      for (const [x, y] of points)
        add(group, "path", {
          d: outline(index, plan.chosen ? 4.4 : 3.6),
          transform: `translate(${x} ${y})`,
          class: "mark",
          fill: colour(index),
        });
    }
  };
}
