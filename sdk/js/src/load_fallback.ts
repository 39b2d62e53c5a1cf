/**
 * Loads the part of this package that a page on a good network hardly needs, as a chunk of its own where the bundler makes
 * one. It is fetched as soon as a session is live, so that it is there when something else is not; a failure is tried
 * again by the next one who needs it.
 */

type Fallback = typeof import("./fallback.js");

let loading: Promise<Fallback> | null = null;

export function loadFallback(): Promise<Fallback> {
  loading ??= import("./fallback.js").catch((error: unknown) => {
    loading = null;
    throw error;
  });
  return loading;
}
