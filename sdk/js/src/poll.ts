/** The last rung: long poll, for networks that let nothing stay open. */

import { ask, closeOf, endingOf } from "./ask.js";
import { type OpenChannel, reading } from "./channel.js";
import { NO_GATEWAY } from "./endings.js";
import type { Query } from "./http.js";
import { textOf } from "./messages.js";
import { sleep } from "./platform.js";

/** The first poll is there for its welcome. */
const FIRST_WAIT_SECONDS = 0.1;
/** An answer without anything that comes sooner was no long poll: something between answers for the gateway. */
const LEAST_MS = 500;

export const openPoll: OpenChannel = (around, sink, query) =>
  reading(sink, async (signal) => {
    const { platform, settings } = around;
    let { cursor: since, replaces } = query;
    for (let isFirst = true; ; isFirst = false) {
      const wait = isFirst ? FIRST_WAIT_SECONDS : settings.timing.pollWait / 1000;
      const began = platform.now();
      const asked: Query = { ...query, cursor: null, sdk: 1, limit: 500, since, replaces, wait };
      const reply = await ask(around, sink, "messages", asked, { signal, waitMs: wait * 1000 });
      if (signal.aborted) return null;
      if (reply.refusal) return endingOf(reply);
      const { frames, close, connection, cursor } = reply.body;
      if (!Array.isArray(frames)) return NO_GATEWAY;
      if (isFirst) sink.opened();
      sink.heard();
      for (const frame of frames) {
        sink.frame(frame, JSON.stringify(frame).length);
        if (signal.aborted) return null;
      }
      since = textOf(cursor) || since;
      replaces = textOf(connection) || replaces;
      if (close) return closeOf(close);
      if (!isFirst && frames.length < 2 && platform.now() - began < LEAST_MS) await sleep(platform, LEAST_MS);
      await sink.room();
      if (signal.aborted) return null;
    }
  });
