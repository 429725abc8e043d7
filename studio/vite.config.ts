import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Names without hashes: the bundle is kept in the repository, and a diff should show what changed, not new names.
export default defineConfig({
  base: "./",
  plugins: [react()],
  build: {
    outDir: "../src/surefoot/server/studio/static",
    emptyOutDir: true,
    chunkSizeWarningLimit: 900,
    rollupOptions: {
      output: {
        entryFileNames: "assets/studio.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
});
