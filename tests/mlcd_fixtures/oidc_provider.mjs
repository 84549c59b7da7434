// A real provider of OpenID Connect (npm: oidc-provider, certified) on loopback, with its own pages for signing in.
// node oidc_provider.mjs FOLDER_OF_THE_PACKAGE CLIENT SECRET REDIRECT_URI GROUPS_BY_NAME: prints its issuer.

import http from "node:http";
import { pathToFileURL } from "node:url";

const [folder, client_id, client_secret, redirect_uri, groups] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${folder}/lib/index.js`).href);
const groupsOf = JSON.parse(groups);

const server = http.createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id, client_secret, redirect_uris: [redirect_uri] }],
    claims: { openid: ["sub"], profile: ["preferred_username"], groups: ["groups"] },
    findAccount: (_, name) => ({
      accountId: name,
      claims: () => ({ sub: name, preferred_username: name, groups: groupsOf[name] ?? [] }),
    }),
    pkce: { required: () => true },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
process.stdin.on("end", () => process.exit()).resume(); // whoever started it is gone
