/** The tests that use a session from outside, against what is published: with the short names of its build. */

import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const built = (path: string) => fileURLToPath(new URL(`dist/${path}`, import.meta.url));

export default defineConfig({
  plugins: [
    {
      name: "published files in place of sources",
      enforce: "pre",
      resolveId(source) {
        if (/src\/(index|session|errors|store|platform)\.js$/.test(source)) return built("relayrouter.min.js");
        return undefined;
      },
    },
  ],
  test: {
    include: [
      "test/{credentials,delivery,inputs,keeper,liveness,order,poll,reconnect}.test.ts",
      "test/stores/session.test.ts",
    ],
    testTimeout: 10_000,
  },
});
