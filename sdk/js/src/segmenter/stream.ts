/** A plain stream of text, cut into segments: no gateway needed. Timers are set here, and nowhere else in the segmenter. */

import type { SegmentOptions } from "./options.js";
import type { Segment } from "./rule.js";
import { Segmenter } from "./segmenter.js";

export type TextChunk = string | Uint8Array;

/** What an LLM's library hands out: something to iterate, or a web stream (Safari cannot iterate those). */
export type TextSource<Chunk> = AsyncIterable<Chunk> | Iterable<Chunk> | ReadableStream<Chunk>;

export interface SegmentStreamOptions<Chunk> extends SegmentOptions {
  /** The text of one chunk; needed unless chunks are texts or UTF-8 bytes: `(chunk) => chunk.choices[0]?.delta.content`. */
  readonly text?: (chunk: Chunk) => string | null | undefined;
}

const LATE = Symbol("late");

/**
 * The segments of a stream as soon as they are complete or due. Reads one chunk ahead; an error of the source comes out
 * after what was held. Leaving the loop ends the source.
 */
export async function* segmentStream<Chunk = TextChunk>(
  source: TextSource<Chunk>,
  options: SegmentStreamOptions<Chunk> = {},
): AsyncGenerator<Segment, void, undefined> {
  const segmenter = new Segmenter(options);
  const text = options.text ? { of: options.text, rest: () => "" } : plainText();
  const chunks = iteratorOf(source);
  let isOver = false;
  const read = async (): Promise<IteratorResult<Chunk, unknown> | Failure> => {
    try {
      const result = await chunks.next();
      isOver = result.done === true;
      return result;
    } catch (error) {
      isOver = true;
      return new Failure(error);
    }
  };
  try {
    let next = read();
    for (;;) {
      const got = await within(next, segmenter.dueMs());
      if (got === LATE) {
        yield* segmenter.tick(performance.now());
        continue;
      }
      if (got instanceof Failure) {
        yield* segmenter.flush();
        throw got.error;
      }
      if (got.done) break;
      yield* segmenter.feed(text.of(got.value) ?? "", performance.now());
      next = read();
    }
    yield* segmenter.feed(text.rest(), performance.now());
    yield* segmenter.flush();
  } finally {
    // Not awaited: a source that hangs must not hold up who leaves it.
    if (!isOver) chunks.return?.().then(undefined, () => undefined);
  }
}

class Failure {
  constructor(readonly error: unknown) {}
}

/** What comes first: the chunk, or the time. */
async function within<T>(next: Promise<T>, dueMs: number | null): Promise<T | typeof LATE> {
  if (dueMs === null) return next;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, dueMs - performance.now()), LATE);
  });
  try {
    return await Promise.race([next, late]);
  } finally {
    clearTimeout(timer);
  }
}

interface TextReader<Chunk> {
  of(chunk: Chunk): string | null | undefined;
  /** What is left at the end: the beginning of a character that never became whole. */
  rest(): string;
}

function plainText(): TextReader<unknown> {
  const decoder = new TextDecoder();
  return {
    of: (chunk) => {
      if (typeof chunk === "string") return chunk;
      if (chunk instanceof Uint8Array) return decoder.decode(chunk, { stream: true });
      throw new TypeError("a chunk is neither text nor bytes; say how to read it with the option `text`");
    },
    rest: () => decoder.decode(),
  };
}

function iteratorOf<Chunk>(source: TextSource<Chunk>): AsyncIterator<Chunk, unknown> {
  if (Symbol.asyncIterator in source) return source[Symbol.asyncIterator]();
  if (isWebStream(source)) return readerOf(source);
  const plain = source[Symbol.iterator]();
  return {
    next: async () => plain.next(),
    return: async () => plain.return?.() ?? { done: true, value: undefined },
  };
}

function readerOf<Chunk>(stream: ReadableStream<Chunk>): AsyncIterator<Chunk, unknown> {
  const reader = stream.getReader();
  return {
    next: async () => {
      const { done, value } = await reader.read();
      return done ? { done: true, value: undefined } : { done: false, value };
    },
    return: async () => {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  };
}

function isWebStream<Chunk>(source: TextSource<Chunk>): source is ReadableStream<Chunk> {
  return "getReader" in source;
}
