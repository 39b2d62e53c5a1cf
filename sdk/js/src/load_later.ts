/**
 * Loads the part of this package that the first message does not need, as a chunk of its own where the bundler makes one.
 * It is fetched as soon as a session is live, or earlier by whoever needs it, so that it is there when the network is
 * not. A failure is tried again by the next one who needs it.
 */

type Later = typeof import("./later.js");

let loading: Promise<Later> | null = null;

export function loadLater(): Promise<Later> {
  loading ??= import("./later.js").catch((error: unknown) => {
    loading = null;
    throw error;
  });
  return loading;
}
