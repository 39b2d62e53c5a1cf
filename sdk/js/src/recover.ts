/** Recovery for who reads: by code that is loaded when it is needed, and over the connection of that moment. */

import type { Emitter } from "./events.js";
import { loadLater } from "./load_later.js";
import type { Platform } from "./platform.js";
import type { Recovery, RecoveryRequest } from "./recovery.js";
import type { RunTexts } from "./texts.js";

/** Undefined when it could not be loaded, or what came is no history: then nothing is recovered. */
export type Recover = <T>(act: (recovery: Recovery) => Promise<T>) => Promise<T | undefined>;

export function recoverBy(platform: Platform, emitter: Emitter, texts: RunTexts, request: RecoveryRequest): Recover {
  return async (act) => {
    try {
      const { Recovery } = await loadLater();
      return await act(new Recovery(platform, emitter, texts, request));
    } catch {
      return undefined;
    }
  };
}
