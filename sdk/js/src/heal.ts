/** Checks the text of each ended run by its digest, and fetches what is wrong or missing from history, once per run. */

import type { DigestEvent } from "./events.js";
import type { JsonObject } from "./messages.js";
import { readFrame } from "./messages.js";
import { type Run, type RunText, RunTexts, type Track } from "./texts.js";

export interface HealSink {
  sha256(data: Uint8Array): Promise<string>;
  /** Envelopes of the retained log from its start, until `onPage` returns false. */
  history(onPage: (frames: readonly unknown[]) => boolean): Promise<boolean>;
  /** Show the text anew. */
  rewritten(run: string, track: Track): void;
  digest(event: DigestEvent): void;
}

const encoder = new TextEncoder();

export class Healer {
  constructor(
    private readonly _texts: RunTexts,
    private readonly _sink: HealSink,
  ) {}

  /** `told`: the payload of `run_end`. Says nothing where there is nothing to compare. */
  async verify(run: string, told: JsonObject): Promise<void> {
    const known = this._texts.runs.get(run);
    if (known === undefined || known.isCut || typeof told.sha256 !== "string") return;
    if (await this._isEqual(known.text, told)) return this._sink.digest({ run, ok: true, healed: false });
    if (known.isHealed) return;
    known.isHealed = true;
    const fetched = await this._fetch(run);
    if (fetched !== null && (await this._isEqual(fetched.text, told))) {
      known.text.replace(fetched.text.value());
      this._sink.rewritten(run, "text");
      this._sink.digest({ run, ok: true, healed: true });
    } else if (!known.hasGap) {
      this._sink.digest({ run, ok: false, healed: false });
    }
  }

  /** A run that we joined in its middle although our place is before: the page was loaded again. */
  async fill(run: string, known: Run): Promise<void> {
    if (known.isFilled || known.isCut) return;
    known.isFilled = true;
    const fetched = await this._fetch(run);
    if (fetched === null || this._texts.runs.get(run) !== known) return;
    for (const track of ["text", "thinking"] as const) {
      if (!known[track].isWhole && known[track].prepend(fetched[track])) this._sink.rewritten(run, track);
    }
  }

  private async _fetch(run: string): Promise<Run | null> {
    const texts = new RunTexts();
    const isRead = await this._sink.history((frames) => {
      for (const envelope of frames) {
        const frame = readFrame(envelope);
        if (frame.run === run && texts.apply(frame)?.end) return false;
      }
      return true;
    });
    return isRead ? (texts.runs.get(run) ?? null) : null;
  }

  private async _isEqual(text: RunText, told: JsonObject): Promise<boolean> {
    if (!text.isWhole) return false;
    const value = text.value();
    const data = encoder.encode(value);
    if (typeof told.bytes === "number" && told.bytes !== data.length) return false;
    return (await this._sink.sha256(data)) === told.sha256;
  }
}
