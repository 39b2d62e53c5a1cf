/** Recovery for who reads: by code that is loaded when it is needed, and over the connection of that moment. */

import type { Emitter } from "./events.js";
import type { HistoryRequest } from "./history.js";
import { loadLater } from "./load_later.js";
import type { Platform } from "./platform.js";
import type { Recovery } from "./recovery.js";
import type { RunTexts } from "./texts.js";

/** Undefined when it could not be loaded, or what came is no history: then nothing is recovered. */
export type Recover = <T>(act: (recovery: Recovery) => Promise<T>) => Promise<T | undefined>;

export function recoverBy(
  platform: Platform,
  emitter: Emitter,
  texts: RunTexts,
  request: () => Omit<HistoryRequest, "since">,
): Recover {
  return async (act) => {
    const asked = request();
    try {
      const { Recovery } = await loadLater();
      return await act(new Recovery(platform, emitter, texts, asked));
    } catch {
      return undefined;
    }
  };
}
