/** The tests that use a session from outside, against what is published: each build is squeezed in its own way. */

import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const built = (path: string) => fileURLToPath(new URL(`dist/${path}`, import.meta.url));

const against = (file: string) => ({
  plugins: [
    {
      name: "published files in place of sources",
      enforce: "pre" as const,
      resolveId(source: string) {
        if (/src\/(index|session|errors|store|platform)\.js$/.test(source)) return built(file);
        return undefined;
      },
    },
  ],
  test: {
    name: file,
    include: [
      "test/{credentials,delivery,inputs,keeper,liveness,order,poll,reconnect}.test.ts",
      "test/stores/session.test.ts",
    ],
    testTimeout: 10_000,
  },
});

export default defineConfig({
  test: { projects: ["relayrouter.min.js", "esm/index.js"].map(against) },
});
