/**
 * What happened in each run of a session, in order: whoever reads an answer reads it from its beginning, however late.
 * An agent may have ended a run before anybody could ask for it.
 */

import type { JsonObject } from "../messages.js";
import type { Session } from "../session.js";

export type RunItem =
  | { readonly kind: "text" | "thinking"; readonly text: string }
  | { readonly kind: "other"; readonly name: string; readonly payload: JsonObject; readonly id: string }
  /** What was shown of the text is no longer true. */
  | { readonly kind: "broken" }
  | { readonly kind: "end"; readonly payload: JsonObject };

/** Of one run; what is beyond is not shown to latecomers. */
const MAX_ITEMS = 2_000;
/** The session itself remembers as many ended ones. */
const MAX_ENDED = 16;
const MAX_RUNS = 64;
/** They are shown otherwise, or by nobody. */
const NOT_SHOWN = new Set(["run_start", "run_end", "delta", "thinking", "code_block", "snapshot", "cut", "echo"]);

export class RunRecord {
  isEnded = false;
  #items: RunItem[] = [];
  #text = "";
  readonly #listeners = new Set<(item: RunItem) => void>();

  constructor(readonly run: string) {}

  /** Everything up to now, then everything that comes. Returns how to stop. */
  follow(listener: (item: RunItem) => void): () => void {
    for (const item of this.#items) listener(item);
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  add(item: RunItem): void {
    const last = this.#items[this.#items.length - 1];
    if (item.kind === "text") this.#text += item.text;
    if ((item.kind === "text" || item.kind === "thinking") && last?.kind === item.kind) {
      this.#items[this.#items.length - 1] = { kind: item.kind, text: last.text + item.text };
    } else if (this.#items.length < MAX_ITEMS || item.kind === "end") this.#items.push(item);
    if (item.kind === "end") this.isEnded = true;
    for (const listener of [...this.#listeners]) listener(item);
  }

  /** Where it begins as what was shown does, it only goes on. */
  rewrite(text: string): void {
    if (text.startsWith(this.#text)) {
      if (text.length > this.#text.length) this.add({ kind: "text", text: text.slice(this.#text.length) });
      return;
    }
    this.#items = this.#items.filter(({ kind }) => kind !== "text");
    this.#text = text;
    if (text) this.#items.push({ kind: "text", text });
    for (const listener of [...this.#listeners]) listener({ kind: "broken" });
  }
}

export class RunRecords {
  readonly #records = new Map<string, RunRecord>();

  /** Listens as long as the session lives. */
  constructor(session: Session) {
    session.on("text", ({ run, added, isRewritten }) => {
      if (isRewritten) this.#of(run).rewrite(session.text(run));
      else this.#of(run).add({ kind: "text", text: added });
    });
    session.on("thinking", ({ run, added, isRewritten }) => {
      if (!isRewritten) this.#of(run).add({ kind: "thinking", text: added });
    });
    session.on("run", ({ run, state, payload }) => {
      if (state === "ended") this.#of(run).add({ kind: "end", payload });
      else this.#of(run);
    });
    session.on("message", ({ kind: name, run, payload, seq }) => {
      if (NOT_SHOWN.has(name)) return;
      const id = typeof payload.ask === "string" ? payload.ask : `${name}-${seq ?? `${payload.first}-${payload.last}`}`;
      const item = { kind: "other", name, payload, id } as const;
      if (run !== null) this.#of(run).add(item);
      else for (const record of this.#records.values()) if (!record.isEnded) record.add(item);
    });
  }

  get(run: string): RunRecord | undefined {
    return this.#records.get(run);
  }

  /** The newest one that is open. */
  get open(): RunRecord | undefined {
    return [...this.#records.values()].findLast((record) => !record.isEnded);
  }

  #of(run: string): RunRecord {
    const known = this.#records.get(run);
    if (known) return known;
    const record = new RunRecord(run);
    this.#records.set(run, record);
    const ended = [...this.#records.values()].filter(({ isEnded }) => isEnded);
    const oldest = ended.length > MAX_ENDED ? ended[0] : [...this.#records.values()][0];
    if (oldest && (ended.length > MAX_ENDED || this.#records.size > MAX_RUNS)) this.#records.delete(oldest.run);
    return record;
  }
}
