import { describe, expect, it } from "vitest";
import { type Segment, segmentStream } from "../../src/segmenter/index.js";

async function textsOf(segments: AsyncIterable<Segment>): Promise<string[]> {
  const out: string[] = [];
  for await (const segment of segments) out.push(segment.text);
  return out;
}

const still = { maxDelayMs: 10_000, firstImmediately: false } as const;

describe("segmentStream", () => {
  it("cuts an async iterable, a web stream and a plain iterable", async () => {
    const words = ["One. ", "Two. Th", "ree."];
    async function* source(): AsyncGenerator<string> {
      yield* words;
    }
    const sentences = ["One. ", "Two. ", "Three."];
    expect(await textsOf(segmentStream(source(), { mode: "sentence", ...still }))).toEqual(sentences);
    expect(await textsOf(segmentStream(words, { mode: "sentence", ...still }))).toEqual(sentences);
    const stream = new ReadableStream<string>({
      start(controller) {
        for (const word of words) controller.enqueue(word);
        controller.close();
      },
    });
    expect(await textsOf(segmentStream(stream, { mode: "sentence", ...still }))).toEqual(sentences);
  });

  it("reads bytes cut anywhere, and says what the end left open", async () => {
    const bytes = new TextEncoder().encode("你好");
    expect(await textsOf(segmentStream([bytes.slice(0, 2), bytes.slice(2, 5)], { mode: "raw" }))).toEqual([
      "你",
      "\ufffd",
    ]);
  });

  it("reads chunks of a library by `text`", async () => {
    const chunks = [{ delta: "a" }, { delta: null }, { delta: "b" }];
    expect(await textsOf(segmentStream(chunks, { mode: "raw", text: (chunk) => chunk.delta }))).toEqual(["a", "b"]);
  });

  it("hands out what is due while the source is silent", async () => {
    let end = (): void => undefined;
    async function* source(): AsyncGenerator<string> {
      yield "Hello";
      await new Promise<void>((resolve) => {
        end = resolve;
      });
    }
    const segments = segmentStream(source(), { maxDelayMs: 1 });
    expect((await segments.next()).value).toEqual({ text: "Hello", isCode: false });
    const rest = segments.next();
    end();
    expect((await rest).done).toBe(true);
  });

  it("ends the source when the loop is left, also one that hangs", async () => {
    let isEnded = false;
    const source: AsyncIterable<string> = {
      [Symbol.asyncIterator]: () => {
        let count = 0;
        return {
          next: () => (count++ ? new Promise(() => undefined) : Promise.resolve({ done: false, value: "Yes. No" })),
          return: () => {
            isEnded = true;
            return new Promise(() => undefined);
          },
        };
      },
    };
    for await (const segment of segmentStream(source, { mode: "sentence", ...still })) {
      expect(segment.text).toBe("Yes. ");
      break;
    }
    expect(isEnded).toBe(true);
  });

  it("hands out what was held before the source's error", async () => {
    async function* source(): AsyncGenerator<string> {
      yield "held";
      throw new Error("the model is gone");
    }
    const segments = segmentStream(source(), still);
    expect((await segments.next()).value).toEqual({ text: "held", isCode: false });
    await expect(segments.next()).rejects.toThrow("the model is gone");
  });
});
