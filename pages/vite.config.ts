import { defineConfig } from "vite";

// File names carry no hash: what is built is committed, and a change should be a diff of a file, not a new one.
export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    outDir: "../mlcd/service/web/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    rollupOptions: {
      output: {
        manualChunks: (id) =>
          /node_modules\/(@observablehq|d3|interval-tree|binary-search|isoformat)/.test(id) ? "plot" : undefined,
        entryFileNames: "assets/[name].js",
        chunkFileNames: (chunk) => (chunk.isDynamicEntry ? "assets/page-[name].js" : "assets/[name].js"),
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  server: { port: 5173, proxy: { "/api": "http://127.0.0.1:8421" } },
});
