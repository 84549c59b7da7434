import type { JSX } from "preact";
import { usd } from "../format";

interface BarsProps {
  caption: string;
  of: { name: string; usd: number; note: string }[];
}

/** Amounts as bars: a table with a drawn second column. */
export function Bars({ caption, of }: BarsProps): JSX.Element {
  const most = Math.max(...of.map((each) => each.usd), 1e-12);
  return (
    <table class="bars">
      <caption>{caption}</caption>
      <tbody>
        {of.map((each) => (
          <tr key={each.name}>
            <th scope="row">{each.name}</th>
            <td class="bar" aria-hidden="true">
              <i style={{ width: `${(100 * each.usd) / most}%` }} />
            </td>
            <td class="num">{usd(each.usd)}</td>
            <td class="note">{each.note}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
