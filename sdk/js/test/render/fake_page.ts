/** A page with frames by hand, and a session that only has texts. */
import type { SessionEvents, TextEvent } from "../../src/events.js";
import type { FrameClock, TextSession } from "../../src/render/index.js";

export class FakePage implements FrameClock {
  time = 0;
  hidden = false;
  readonly #frames = new Set<() => void>();
  readonly #timers = new Map<() => void, number>();

  now(): number {
    return this.time;
  }

  readonly frame = (fn: () => void): (() => void) => {
    this.#frames.add(fn);
    return () => this.#frames.delete(fn);
  };

  after(ms: number, fn: () => void): () => void {
    this.#timers.set(fn, this.time + ms);
    return () => this.#timers.delete(fn);
  }

  isHidden(): boolean {
    return this.hidden;
  }

  /** The browser draws, so many ms later. */
  draw(ms = 16): void {
    this.time += ms;
    const due = [...this.#frames];
    this.#frames.clear();
    for (const fn of due) fn();
  }

  /** Time goes by without frames. */
  pass(ms: number): void {
    this.time += ms;
    for (const [fn, at] of [...this.#timers]) {
      if (at > this.time) continue;
      this.#timers.delete(fn);
      fn();
    }
  }

  get waiting(): number {
    return this.#frames.size + this.#timers.size;
  }
}

export class FakeSession implements TextSession {
  readonly texts = new Map<string, string>();
  readonly told: number[] = [];
  readonly #listeners = new Map<string, Set<(event: never) => void>>();

  on<K extends keyof SessionEvents>(name: K, listener: (event: SessionEvents[K]) => void): () => void {
    const own = (event: never) => listener(event);
    const known = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, known.add(own));
    return () => known.delete(own);
  }

  emit<K extends keyof SessionEvents>(name: K, event: SessionEvents[K]): void {
    for (const listener of this.#listeners.get(name) ?? []) listener(event as never);
  }

  get listeners(): number {
    return [...this.#listeners.values()].reduce((sum, known) => sum + known.size, 0);
  }

  /** How often somebody asked for a text. */
  reads = 0;

  text(run: string): string {
    this.reads += 1;
    return this.texts.get(run) ?? "";
  }

  thinking(run: string): string {
    return this.text(`${run}/thinking`);
  }

  reportBehind(ms: number): void {
    this.told.push(ms);
  }

  add(run: string, added: string): void {
    this.texts.set(run, (this.texts.get(run) ?? "") + added);
    this.emit("text", { run, added, isRewritten: false } satisfies TextEvent);
  }

  rewrite(run: string, text: string): void {
    this.texts.set(run, text);
    this.emit("text", { run, added: "", isRewritten: true });
  }

  end(run: string): void {
    this.emit("run", { run, state: "ended", reason: "complete", payload: {} });
  }
}
