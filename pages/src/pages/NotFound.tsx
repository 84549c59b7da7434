import type { JSX } from "preact";
import { Page } from "../parts/Page";
import { Link } from "../parts/router";

export default function NotFound({ path }: { path: string }): JSX.Element {
  return (
    <Page title="There is no such page" lead={<code>{path}</code>} narrow>
      <p>
        <Link to="/">All runs</Link> are on the first page, and <Link to="/submit">Submit</Link> starts another.
      </p>
    </Page>
  );
}
