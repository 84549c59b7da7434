import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import pages from "./vite.config";

/** One file out of what was built: report.html with the script and the styles inside, and the hash of the script. */
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const built = Object.values(bundle);
      const script = built.map((each) => (each.type === "chunk" ? each.code : "")).join("");
      const style = built.map((each) => (each.type === "asset" ? String(each.source) : "")).join("");
      const inside = script.trim().replaceAll("</script", "<\\/script").replaceAll("<!--", "\\x3C!--");
      const source = readFileSync("report.html", "utf8")
        .replace("HASH", createHash("sha256").update(inside).digest("base64"))
        .replace("STYLE", () => style.trim())
        .replace("SCRIPT", () => inside);
      for (const name of Object.keys(bundle)) delete bundle[name];
      this.emitFile({ type: "asset", fileName: "report.html", source });
    },
  };
}

export default defineConfig({
  esbuild: pages.esbuild!,
  publicDir: false,
  plugins: [oneFile()],
  build: {
    outDir: "../mlcd/reports/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    rollupOptions: { input: "src/report.tsx", output: { format: "iife", inlineDynamicImports: true } },
  },
});
