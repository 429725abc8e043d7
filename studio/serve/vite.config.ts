import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Names without hashes, as the studio's: the bundle is kept in the repository.
export default defineConfig({
  root: "serve",
  base: "./",
  plugins: [react()],
  build: {
    outDir: "../../src/surefoot/server/http/static/serve",
    emptyOutDir: true,
    rollupOptions: {
      output: {
        entryFileNames: "assets/serve.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/serve[extname]",
      },
    },
  },
});
