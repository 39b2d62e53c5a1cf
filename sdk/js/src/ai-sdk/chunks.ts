/** One run as the AI SDK's UI message chunks. Pure. */

import type { UIMessageChunk } from "ai";
import { type JsonObject, type JsonValue, textOf } from "../messages.js";
import type { RunItem } from "./run_records.js";
import { ToolCalls } from "./tool_calls.js";

type Part = "text" | "reasoning";

const FINISH_REASONS: Readonly<Record<string, "length" | "tool-calls" | "content-filter">> = {
  length: "length",
  max_tokens: "length",
  max_output_tokens: "length",
  model_context_window_exceeded: "length",
  tool_calls: "tool-calls",
  tool_use: "tool-calls",
  function_call: "tool-calls",
  content_filter: "content-filter",
  refusal: "content-filter",
};
const PROBLEMS: Readonly<Record<string, string>> = {
  failed: "the provider's stream failed",
  abandoned: "the producer fell silent and did not come back",
};
const ENVELOPE = new Set(["kind", "run", "late"]);

export class RunChunks {
  readonly #run: string;
  readonly #calls: ToolCalls;
  #part: Part | null = null;

  constructor(run: string) {
    this.#run = run;
    this.#calls = new ToolCalls(run);
  }

  of(item: Exclude<RunItem, { kind: "broken" }>): UIMessageChunk[] {
    switch (item.kind) {
      case "text":
      case "thinking":
        return this.#more(item.kind === "text" ? "text" : "reasoning", item.text);
      case "other":
        return this.#other(item.name, item.payload, item.id);
      case "end":
        return this.#end(item.payload);
    }
  }

  #more(part: Part, delta: string): UIMessageChunk[] {
    return delta ? [...this.#open(part), { type: `${part}-delta`, id: this.#id(part), delta }] : [];
  }

  /** A message of the run that is not text. `id`: of this message, the same each time. */
  #other(kind: string, payload: JsonObject, id: string): UIMessageChunk[] {
    if (kind === "tool") {
      const chunks = this.#calls.take(payload.data);
      if (chunks) return [...this.#close(), ...chunks];
    }
    return [{ type: `data-${kind}`, id, data: dataOf(payload) }];
  }

  #end(payload: JsonObject): UIMessageChunk[] {
    const reason = textOf(payload.reason) || "failed";
    const chunks = this.pause();
    if (reason === "complete") {
      const finishReason = FINISH_REASONS[textOf(payload.finish_reason)] ?? "stop";
      return [...chunks, { type: "finish", finishReason }];
    }
    if (reason === "incomplete") return [...chunks, { type: "finish", finishReason: "other" }];
    if (reason === "interrupted" || reason === "cancelled") {
      return [...chunks, { type: "abort", reason }, { type: "finish", finishReason: "other" }];
    }
    const errorText = textOf(payload.problem) || PROBLEMS[reason] || `the run ended as ${reason.slice(0, 32)}`;
    return [...chunks, { type: "error", errorText }];
  }

  /** Closes what is open, without an end. */
  pause(): UIMessageChunk[] {
    return [...this.#calls.close(), ...this.#close()];
  }

  #open(part: Part): UIMessageChunk[] {
    const chunks = this.#calls.close();
    if (this.#part === part) return chunks;
    chunks.push(...this.#close());
    this.#part = part;
    chunks.push({ type: `${part}-start`, id: this.#id(part) });
    return chunks;
  }

  #close(): UIMessageChunk[] {
    const part = this.#part;
    this.#part = null;
    return part ? [{ type: `${part}-end`, id: this.#id(part) }] : [];
  }

  #id(part: Part): string {
    return `${this.#run}-${part}`;
  }
}

/** `data` alone where there is nothing else. */
function dataOf(payload: JsonObject): JsonValue | undefined {
  const rest = Object.entries(payload).filter(([name]) => !ENVELOPE.has(name));
  return rest.length === 1 && rest[0]?.[0] === "data" ? rest[0][1] : Object.fromEntries(rest);
}
