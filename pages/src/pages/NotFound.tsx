import type { JSX } from "preact";
import { Page } from "../parts/Page";
import { Link } from "../parts/router";

export default function NotFound({ path }: { path: string }): JSX.Element {
  return (
    <Page title="Page not found" lead={<code>{path}</code>} narrow>
      <p>
        See <Link to="/">all runs</Link>, or <Link to="/submit">submit</Link> a new one.
      </p>
    </Page>
  );
}
