/** Ways to cut a text in tests; the options come in the words of the vectors. */
import { type Segment, Segmenter, type SegmentMode, type SegmentOptions } from "../../src/segmenter/index.js";

export interface WireOptions {
  readonly mode?: SegmentMode;
  readonly tokens?: number;
  readonly max_delay_ms?: number;
  readonly max_bytes?: number;
  readonly first_immediately?: boolean;
  readonly pattern?: string | null;
}

export function optionsOf(wire: WireOptions): SegmentOptions {
  return {
    ...(wire.mode !== undefined && { mode: wire.mode }),
    ...(wire.tokens !== undefined && { tokens: wire.tokens }),
    ...(wire.max_delay_ms !== undefined && { maxDelayMs: wire.max_delay_ms }),
    ...(wire.max_bytes !== undefined && { maxBytes: wire.max_bytes }),
    ...(wire.first_immediately !== undefined && { firstImmediately: wire.first_immediately }),
    ...(wire.pattern != null && { pattern: wire.pattern }),
  };
}

/** Without the clock: the time stands still. */
export function run(options: SegmentOptions, feeds: readonly string[]): Segment[] {
  const segmenter = new Segmenter(options);
  return [...feeds.flatMap((feed) => segmenter.feed(feed, 0)), ...segmenter.flush()];
}
