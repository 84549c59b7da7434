/** An uploaded model and its operators. */

import type { JSX } from "preact";
import { bytes, count, percent, plural } from "../../format";
import type { Uploaded } from "../../types";

const MOST = 6;
export function Model({ model, onLeave }: { model: Uploaded; onLeave: () => void }): JSX.Element {
  const { family, parameters, inputs, note } = model.facts;
  const facts = [family, parameters ? `${count(parameters * 1e9)} parameters` : "", inputs, bytes(model.size)].filter(
    Boolean,
  );
  const most = Math.max(...model.operators.map(size), 1e-12);
  return (
    <div class="model">
      <div class="model-head">
        <div>
          <b>{model.name}</b>
          <span class="under">{facts.join(" · ")}</span>
        </div>
        <button type="button" class="button small" onClick={onLeave}>
          Choose another
        </button>
      </div>
      <table class="bars">
        <caption>Operators of the model, by their share of its work</caption>
        <tbody>
          {model.operators.slice(0, MOST).map((each) => (
            <tr key={each.kind}>
              <th scope="row">{each.kind}</th>
              <td class="bar" aria-hidden="true">
                <i style={{ width: `${(100 * size(each)) / most}%` }} />
              </td>
              <td class="num">{each.share === null ? "" : percent(each.share)}</td>
              <td class="note">× {each.count}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {model.operators.length > MOST && <p class="note">and {plural(model.operators.length - MOST, "other")}</p>}
      {note && <p class="note">{note}</p>}
    </div>
  );
}

/** By the share of a pass's time; if the model could not be run, by count. */
function size(operator: Uploaded["operators"][number]): number {
  return operator.share ?? operator.count;
}
