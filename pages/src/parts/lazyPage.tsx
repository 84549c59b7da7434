import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Loading, Notice } from "./Notice";

type Module<P> = { default: ComponentType<P> };

/** A page whose code is loaded when it is first opened: charts are the largest part. */
export function lazyPage<P extends object>(fetched: () => Promise<Module<P>>): (props: P) => JSX.Element {
  let found: ComponentType<P> | null = null;
  return function LazyPage(props: P): JSX.Element {
    const [, setReady] = useState(found !== null);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (found !== null) return;
      fetched().then(
        (module) => {
          found = module.default;
          setReady(true);
        },
        () => setFailed(true),
      );
    }, []);
    if (failed) return <Notice tone="bad">This page could not be loaded from the server. Reload it.</Notice>;
    if (found === null) return <Loading what="the page" />;
    const Found = found;
    return <Found {...props} />;
  };
}
