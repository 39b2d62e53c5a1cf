/** One run of a session as a stream that `useChat` reads: from its beginning, also for those who come later. */

import type { UIMessageChunk } from "ai";
import { ClosedError, RelayError } from "../errors.js";
import type { Session } from "../session.js";
import { RunChunks } from "./chunks.js";
import type { RunItem, RunRecord } from "./run_records.js";

/**
 * Ends with the run; errors when the session is closed for good. `signal`: the user's stop, which interrupts the run.
 * `message`: the one that goes on with it, instead of a message of its own.
 */
export function runStream(
  session: Session,
  record: RunRecord,
  signal: AbortSignal | undefined,
  message?: string,
): ReadableStream<UIMessageChunk> {
  const chunks = new RunChunks(record.run);
  const stops: (() => void)[] = [];
  let isOver = false;
  const stop = () => {
    isOver = true;
    for (const each of stops.splice(0)) each();
  };
  return new ReadableStream<UIMessageChunk>({
    start(controller) {
      const put = (list: readonly UIMessageChunk[]) => {
        for (const chunk of list) controller.enqueue(chunk);
      };
      const fail = (error: Error) => {
        stop();
        controller.error(error);
      };
      const onItem = (item: RunItem) => {
        if (isOver) return;
        if (item.kind === "broken") {
          fail(new RelayError("text_rewritten", "the server lost the end of this text: resume the stream", true));
          return;
        }
        put(chunks.of(item));
        if (item.kind !== "end") return;
        stop();
        controller.close();
      };
      const onAbort = () => {
        if (isOver) return;
        session.interrupt(record.run).catch(() => undefined); // it had ended, or the session has: nothing is to be stopped
        put([...chunks.pause(), { type: "abort", reason: "interrupted" }]);
        stop();
        controller.close();
      };

      put([{ type: "start", messageId: message ?? record.run }]);
      signal?.addEventListener("abort", onAbort, { once: true });
      stops.push(
        () => signal?.removeEventListener("abort", onAbort),
        session.on("state", ({ state }) => {
          if (state === "closed") fail(session.error ?? new ClosedError("the session was closed"));
        }),
      );
      const unfollow = record.follow(onItem);
      if (isOver) unfollow();
      else stops.push(unfollow);
      if (signal?.aborted) onAbort();
    },
    cancel: stop,
  });
}
