// The package's entry points: those whose source exists.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const SOURCES = {
  index: "src/index.ts",
  segmenter: "src/segmenter/index.ts",
  render: "src/render/index.ts",
  react: "src/react/index.ts",
  "ai-sdk": "src/ai-sdk/index.ts",
  stores: "src/stores/index.ts",
  media: "src/media/index.ts",
};

export const entries = Object.fromEntries(
  Object.entries(SOURCES)
    .map(([name, source]) => [name, join(root, source)])
    .filter(([, source]) => existsSync(source)),
);
