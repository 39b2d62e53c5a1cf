/** Hands messages to the application, by its loop or its listeners, and applies each in that moment: texts, runs, asks. */

import type { Core } from "./core.js";
import { formatCursor } from "./cursor.js";
import type { RelayError } from "./errors.js";
import { type Ask, CONTENT_EVENTS, type RunInfo } from "./events.js";
import { type Frame, type JsonObject, type Message, numberOf, textOf } from "./messages.js";
import { createGate, none } from "./platform.js";
import { type Change, trackOf } from "./texts.js";

const DONE = { done: true, value: undefined } as const;

export function createDelivery(core: Core) {
  const { emitter, texts } = core;
  const _openAsks = new Map<string, Ask>();
  /** Runs that we interrupted: their text that is still on its way is not shown. */
  const _silenced = new Set<string>();
  let _isLooping = false;
  let _isDraining = false;
  const _news = createGate();
  let _isOver = false;
  let _error: RelayError | null = null;
  const self = {
    /** After the last message applied; null before the first. */
    cursor: null as string | null,
    /** We began at a stored position: beginnings of runs are fetched. */
    isFilling: false,

    get asks(): readonly Ask[] {
      return [..._openAsks.values()];
    },

    get runs(): readonly RunInfo[] {
      return [...texts.runs].map(([run, { reason }]) => ({ run, state: reason === null ? "open" : "ended", reason }));
    },

    /** A loop takes what there is, else listeners do, else it waits. */
    drain(): void {
      if (_isLooping) return _news.open();
      if (_isDraining) return; // a listener that subscribes or closes while it is called
      _isDraining = true;
      while (!_isLooping && emitter.has(CONTENT_EVENTS) && _next());
      _isDraining = false;
    },

    loop(): AsyncIterator<Message, undefined> {
      if (_isLooping) throw new Error("read by another loop");
      _isLooping = true;
      let isStopped = false;
      const stop = () => {
        if (!isStopped) {
          isStopped = true;
          _isLooping = false;
          _news.open();
          self.drain();
        }
        return DONE;
      };
      const take = async (): Promise<IteratorResult<Message, undefined>> => {
        while (!isStopped) {
          const taken = _next();
          if (taken?.message) return { done: false, value: taken.message };
          if (taken) continue;
          if (_isOver) {
            stop();
            if (_error) throw _error;
            break;
          }
          await _news.wait();
        }
        return DONE;
      };
      let last: Promise<unknown> = Promise.resolve();
      return {
        // One after the other, also where several are asked for at once.
        next: () => {
          const taken = last.then(take);
          last = taken.catch(none);
          return taken;
        },
        return: async () => stop(),
      };
    },

    /** Nothing comes any more; what came can still be taken. */
    end(error: RelayError | null): void {
      _isOver = true;
      _error = error;
      core.intake.close();
      self.drain();
    },

    silence(run: string): void {
      _silenced.add(run);
    },

    /** An open ask, announced ahead of its place. */
    opened(payload: JsonObject): void {
      const ask = textOf(payload.ask);
      if (!ask || _openAsks.has(ask)) return;
      const run = typeof payload.run === "string" ? payload.run : null;
      const known: Ask = { ask, message: textOf(payload.message), run, payload };
      _openAsks.set(ask, known);
      emitter.emit("ask", known);
    },
  };
  return self;

  // ---- one message -------------------------------------------------------------------------------------------------

  function _next(): { message: Message | null } | null {
    const item = core.intake.take();
    if (!item) return null;
    const isSilenced = _isSilenced(item.frame);
    const change = isSilenced ? null : texts.apply(item.frame);
    if (item.cursor) {
      self.cursor = formatCursor(item.cursor);
      core.acks.note(item.cursor, item.bytes);
      core.keeper.moved(self.cursor);
    }
    const message = isSilenced ? null : _apply(item.frame, change);
    if (message) emitter.emit("message", message);
    return { message };
  }

  function _isSilenced({ kind, run }: Frame): boolean {
    if (run === null || !_silenced.has(run)) return false;
    if (kind === "run_end") _silenced.delete(run);
    return trackOf(kind) !== null || kind === "tool";
  }

  /** Null for what only moves the position. */
  function _apply(frame: Frame, change: Change | null): Message | null {
    const { isControl, kind, run, timestamp, payload } = frame;
    if (change) _tell(change, isControl ? {} : payload);
    if (isControl && kind === "gap") {
      const { first, last, reason } = payload;
      emitter.emit("gap", { first: numberOf(first) ?? 0, last: numberOf(last) ?? 0, reason: textOf(reason) });
    } else if (kind === "ask") {
      self.opened(payload);
    } else if (kind === "ask_resolved") {
      const ask = textOf(payload.ask);
      _openAsks.delete(ask);
      emitter.emit("ask_resolved", { ask, status: textOf(payload.status), value: payload.value, payload });
    }
    if (isControl && kind === "snapshot" && run === null) return null;
    const text = change?.track ? change.added.text : textOf(payload.text);
    const [seq, firstSeq] = isControl ? [null, null] : [frame.seq, frame.firstSeq];
    return { kind, seq, firstSeq, timestamp, run, text, payload, late: payload.late === true };
  }

  function _tell({ run, track, added, begins, end }: Change, payload: JsonObject): void {
    if (begins) emitter.emit("run", { run, state: "open", reason: null, payload });
    const known = texts.runs.get(run);
    if (track && (added.text || added.isRewritten)) {
      emitter.emit(track, { run, added: added.text, isRewritten: added.isRewritten });
      if (self.isFilling && known?.[track].isWhole === false) void core.recovery.fill(run, known);
    }
    if (end) {
      emitter.emit("run", { run, state: "ended", reason: known?.reason ?? null, payload: end });
      core.recovery.verify(run, end).catch(none);
    }
  }
}

export type Delivery = ReturnType<typeof createDelivery>;
