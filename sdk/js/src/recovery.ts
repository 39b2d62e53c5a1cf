/**
 * Fetches from history what connections did not bring: holes, the text of a run that is wrong or has no beginning. By
 * HTTP: it disturbs no connection. What cannot be read, or is no history, recovers nothing.
 */

import { ask } from "./ask.js";
import type { Core } from "./core.js";
import { parseCursor } from "./cursor.js";
import { type JsonObject, numberOf, readFrame } from "./messages.js";
import { sleep } from "./platform.js";
import type { Source } from "./reception.js";
import { createRunTexts, encoder, type Run, type RunText } from "./texts.js";

/** The gateway that is asked may be dying, as the one was that made us ask. */
const ATTEMPTS = 4;
const PAUSE_MS = 500;
/** Of one reading; the gateway's log has no more messages by default. */
const MAX_PAGES = 20;
const PAGE_MESSAGES = 1_000;

export function createRecovery(core: Core) {
  const { platform, emitter, texts } = core;
  const self = {
    /** What follows `since`, handed to the reception. */
    async missing(since: string): Promise<void> {
      const { reception } = core;
      const source: Source = { lineId: parseCursor(since).lineId, start: null, parts: [] };
      await _read(since, (envelope) => {
        reception.takeHistory(source, { frame: readFrame(envelope), bytes: JSON.stringify(envelope).length });
        return true;
      });
    },

    /** Compares a run's text with the digest of its `run_end`; a text that is wrong is fetched again, once. */
    async verify(run: string, told: JsonObject): Promise<void> {
      const tell = (ok: boolean, healed: boolean) => emitter.emit("digest", { run, ok, healed });
      const known = texts.runs.get(run);
      if (!known || known.isCut || typeof told.sha256 !== "string") return;
      if (await _isEqual(known.text, told)) return tell(true, false);
      if (known.isHealed) return;
      known.isHealed = true;
      const fetched = await _fetch(run);
      if (fetched && (await _isEqual(fetched.text, told))) {
        known.text.replace(fetched.text.value());
        emitter.emit("text", { run, added: "", isRewritten: true });
        tell(true, true);
      } else if (!known.hasGap) {
        tell(false, false);
      }
    },

    /** A run that we joined in its middle although our place is before: the page was loaded again. */
    async fill(run: string, known: Run): Promise<void> {
      if (known.isFilled || known.isCut) return;
      known.isFilled = true;
      const fetched = await _fetch(run);
      if (!fetched || texts.runs.get(run) !== known) return;
      for (const track of ["text", "thinking"] as const) {
        if (!known[track].isWhole && known[track].prepend(fetched[track])) {
          emitter.emit(track, { run, added: "", isRewritten: true });
        }
      }
    },
  };

  /** Undefined: it could not be read, or is not there. */
  async function _fetch(run: string): Promise<Run | undefined> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const texts = createRunTexts();
      const isRead = await _read(null, (envelope) => {
        const frame = readFrame(envelope);
        return frame.run !== run || !texts.apply(frame)?.end;
      });
      if (isRead) return texts.runs.get(run);
      if (attempt < ATTEMPTS) await sleep(platform, attempt * PAUSE_MS);
    }
    return undefined;
  }

  /** Hands on each envelope, until `onEnvelope` returns false. False: it could not be read to its end. */
  async function _read(since: string | null, onEnvelope: (envelope: unknown) => boolean): Promise<boolean> {
    const { clientId: client, conductor, credentials, shown } = core;
    for (let page = 0; page < MAX_PAGES && !core.isOver; page++) {
      const asker = conductor.current ?? { url: shown.url, token: credentials.current };
      const { body, refusal } = await ask(core, asker, "messages", { client, limit: PAGE_MESSAGES, since });
      const { frames, more, cursor } = body;
      if (refusal || !Array.isArray(frames)) return false;
      try {
        if (!frames.every(onEnvelope)) return true;
      } catch {
        return false;
      }
      if (more !== true || typeof cursor !== "string" || cursor === since) return true;
      since = cursor;
    }
    return false;
  }

  async function _isEqual(text: RunText, told: JsonObject): Promise<boolean> {
    const data = encoder.encode(text.value());
    if (!text.isWhole || (numberOf(told.bytes) ?? data.length) !== data.length) return false;
    return (await platform.sha256(data)) === told.sha256;
  }
  return self;
}

export type Recovery = ReturnType<typeof createRecovery>;
