/** Fetches from history what connections did not bring: holes, the text of a run that is wrong or has no beginning. */

import { parseCursor } from "./cursor.js";
import type { Emitter } from "./events.js";
import { type HistoryRequest, readHistory } from "./history.js";
import { type JsonObject, readFrame } from "./messages.js";
import type { Platform } from "./platform.js";
import type { Reception, Source } from "./reception.js";
import { type Run, type RunText, RunTexts } from "./texts.js";

const encoder = new TextEncoder();

/** The gateway that is asked may be dying, as the one was that made us ask. */
const ATTEMPTS = 4;
const PAUSE_MS = 500;

/** Of the connection of this moment; null when the session is closed. */
export type RecoveryRequest = () => Omit<HistoryRequest, "since"> | null;

export class Recovery {
  constructor(
    private readonly _platform: Platform,
    private readonly _emitter: Emitter,
    private readonly _texts: RunTexts,
    private readonly _request: RecoveryRequest,
  ) {}

  /** What follows `since`, handed to the reception. False when it could not be read to its end. */
  missing(since: string, reception: Reception): Promise<boolean> {
    const source: Source = { line: parseCursor(since).line, start: null, parts: [] };
    return this._read(since, (frames) => {
      for (const envelope of frames) {
        reception.takeHistory(source, readFrame(envelope), JSON.stringify(envelope).length);
      }
      return true;
    });
  }

  /** Compares a run's text with the digest of its `run_end`; a text that is wrong is fetched again, once. */
  async verify(run: string, told: JsonObject): Promise<void> {
    const known = this._texts.runs.get(run);
    if (known === undefined || known.isCut || typeof told.sha256 !== "string") return;
    if (await this._isEqual(known.text, told)) return this._tell(run, true, false);
    if (known.isHealed) return;
    known.isHealed = true;
    const fetched = await this._fetch(run);
    if (fetched !== null && (await this._isEqual(fetched.text, told))) {
      known.text.replace(fetched.text.value());
      this._emitter.emit("text", { run, added: "", isRewritten: true });
      this._tell(run, true, true);
    } else if (!known.hasGap) {
      this._tell(run, false, false);
    }
  }

  /** A run that we joined in its middle although our place is before: the page was loaded again. */
  async fill(run: string, known: Run): Promise<void> {
    if (known.isFilled || known.isCut) return;
    known.isFilled = true;
    const fetched = await this._fetch(run);
    if (fetched === null || this._texts.runs.get(run) !== known) return;
    for (const track of ["text", "thinking"] as const) {
      if (!known[track].isWhole && known[track].prepend(fetched[track])) {
        this._emitter.emit(track, { run, added: "", isRewritten: true });
      }
    }
  }

  /** Null: it could not be read, or is not there. */
  private async _fetch(run: string): Promise<Run | null> {
    for (let attempt = 1; ; attempt++) {
      const fetched = await this._fetchOnce(run);
      if (fetched !== undefined) return fetched;
      if (attempt === ATTEMPTS) return null;
      await new Promise<void>((resolve) => this._platform.after(attempt * PAUSE_MS, resolve));
    }
  }

  private async _fetchOnce(run: string): Promise<Run | null | undefined> {
    const texts = new RunTexts();
    const isRead = await this._read(null, (frames) => {
      for (const envelope of frames) {
        const frame = readFrame(envelope);
        if (frame.run === run && texts.apply(frame)?.end) return false;
      }
      return true;
    });
    return isRead ? (texts.runs.get(run) ?? null) : undefined;
  }

  private async _read(since: string | null, onPage: (frames: readonly unknown[]) => boolean): Promise<boolean> {
    const request = this._request();
    return request !== null && readHistory(this._platform, { ...request, since }, onPage);
  }

  private async _isEqual(text: RunText, told: JsonObject): Promise<boolean> {
    if (!text.isWhole) return false;
    const data = encoder.encode(text.value());
    if (typeof told.bytes === "number" && told.bytes !== data.length) return false;
    return (await this._platform.sha256(data)) === told.sha256;
  }

  private _tell(run: string, ok: boolean, healed: boolean): void {
    this._emitter.emit("digest", { run, ok, healed });
  }
}
