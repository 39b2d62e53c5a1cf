/** A run's text in the page: one DOM write a frame, whatever comes. */

import type { SessionEvents } from "../events.js";
import { FrameBatch, type FrameClock, pageClock } from "./frames.js";
import { type LagSink, Lateness } from "./lateness.js";
import { TextNodes } from "./text_nodes.js";

/** What of a session is needed here. */
export interface TextSession extends LagSink {
  on<K extends keyof SessionEvents>(name: K, listener: (event: SessionEvents[K]) => void): () => void;
  text(run: string): string;
  thinking(run: string): string;
}

/** A `Segmenter` of `relayrouter/segmenter` is one. */
export interface TextCutter {
  feed(text: string, nowMs: number): readonly { readonly text: string }[];
  dueMs(): number | null;
  tick(nowMs: number): readonly { readonly text: string }[];
  flush(): readonly { readonly text: string }[];
}

export interface RenderOptions {
  /** `thinking` shows the reasoning instead of the answer. */
  readonly track?: "text" | "thinking";
  /** Show whole segments: `() => new Segmenter({ mode: "sentence", maxDelayMs: 500 })`. Called again after a rewrite. */
  readonly segments?: () => TextCutter;
  /** After each write: to scroll along, say. */
  readonly onWrite?: () => void;
  readonly clock?: FrameClock;
}

/** More is not gathered: the session has it all anyway. */
const MAX_GATHERED_CHARS = 64 * 1024;

/**
 * Shows a run's text in `element`, from what there is of it now, until the function that it returns is called. The
 * element's text always is a beginning of `session.text(run)`, and all of it one frame after the last change.
 */
export function renderText(session: TextSession, run: string, element: Node, options: RenderOptions = {}): () => void {
  const clock = options.clock ?? pageClock();
  const track = options.track ?? "text";
  const textOf = () => (track === "text" ? session.text(run) : session.thinking(run));
  const nodes = new TextNodes(element);
  const lateness = new Lateness(session);
  let cutter = options.segments?.() ?? null;
  let cancelTick = (): void => undefined;
  let gathered: string | null = null; // null: all of the session's text is to be shown anew
  let readChars: number | null = null; // of the session's text, when the last write was all of it

  const batch = new FrameBatch((lateMs) => {
    write();
    if (lateness.seen(lateMs, clock.now())) batch.request();
  }, clock);

  const write = (): void => {
    const text = gathered ?? textOf();
    const isAnew = gathered === null;
    if (isAnew) readChars = text.length;
    gathered = "";
    if (isAnew && cutter) cutter = options.segments?.() ?? null;
    const shown = cutter ? cut(cutter, text) : text;
    if (isAnew) nodes.replace(shown);
    else if (shown) nodes.append(shown);
    if (isAnew || shown) options.onWrite?.();
  };

  const cut = (own: TextCutter, text: string): string => {
    const now = clock.now();
    const segments = [...(text ? own.feed(text, now) : []), ...own.tick(now)];
    cancelTick();
    const due = own.dueMs();
    if (due !== null) cancelTick = clock.after(Math.max(0, due - now), () => batch.request());
    return segments.map((segment) => segment.text).join("");
  };

  const stopText = session.on(track, (event) => {
    if (event.run !== run) return;
    // Who begins to show a run in the moment of its announcement has read the text of this very event already.
    const isRead = readChars !== null && textOf().length !== readChars + event.added.length;
    readChars = null;
    const isTooMuch = (gathered?.length ?? 0) + event.added.length > MAX_GATHERED_CHARS;
    if (event.isRewritten || isRead || isTooMuch) gathered = null;
    else if (gathered !== null) gathered += event.added;
    batch.request();
  });
  const stopRun = session.on("run", (event) => {
    if (event.run !== run || event.state !== "ended" || !cutter) return;
    // Nothing follows: what a segmenter holds is all there is.
    batch.flush();
    const rest = cutter.flush().map((segment) => segment.text);
    if (rest.length) nodes.append(rest.join(""));
    if (rest.length) options.onWrite?.();
  });
  batch.request();
  batch.flush();

  return () => {
    stopText();
    stopRun();
    batch.stop();
    cancelTick();
  };
}
