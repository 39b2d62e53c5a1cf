/** Tool calls of any provider as the AI SDK has them: a start, pieces of the arguments, and the arguments whole. */

import type { UIMessageChunk } from "ai";
import { type JsonObject, type JsonValue, numberOf, objectOf, textOf } from "../messages.js";

interface Call {
  readonly id: string;
  readonly name: string;
  readonly index: number | null;
  text: string;
}

interface Part {
  /** Empty: it goes on with a call. */
  readonly name: string;
  readonly id: string;
  readonly index: number | null;
  readonly text: string;
}

/** Of the arguments of one call; what is longer ends as an input error. */
const MAX_ARGUMENT_CHARS = 1024 * 1024;
const MAX_CALLS = 128;

export class ToolCalls {
  readonly #run: string;
  #open: Call[] = [];
  #count = 0;

  constructor(run: string) {
    this.#run = run;
  }

  /** Null: this is no tool call that we know how to read. */
  take(data: JsonValue | undefined): UIMessageChunk[] | null {
    const parts = partsOf(objectOf(data));
    return parts.length ? parts.flatMap((part) => this.#part(part)) : null;
  }

  #part(part: Part): UIMessageChunk[] {
    const chunks: UIMessageChunk[] = [];
    let call = this.#open.findLast((known) => goesOn(known, part));
    if (!call) {
      if (!part.name || this.#count >= MAX_CALLS) return [];
      call = { id: part.id || `${this.#run}-call-${this.#count}`, name: part.name, index: part.index, text: "" };
      this.#count += 1;
      this.#open.push(call);
      chunks.push({ type: "tool-input-start", toolCallId: call.id, toolName: call.name });
    }
    if (part.text && call.text.length <= MAX_ARGUMENT_CHARS) {
      call.text += part.text;
      chunks.push({ type: "tool-input-delta", toolCallId: call.id, inputTextDelta: part.text });
    }
    return chunks;
  }

  /** Something else follows: no call goes on. */
  close(): UIMessageChunk[] {
    const chunks = this.#open.map(whole);
    this.#open = [];
    return chunks;
  }
}

function whole({ id, name, text }: Call): UIMessageChunk {
  const call = { toolCallId: id, toolName: name };
  if (text.length > MAX_ARGUMENT_CHARS) {
    return { type: "tool-input-error", ...call, input: null, errorText: "the arguments are too long" };
  }
  try {
    return { type: "tool-input-available", ...call, input: text.trim() ? JSON.parse(text) : {} };
  } catch {
    return { type: "tool-input-error", ...call, input: text, errorText: "the arguments are no JSON" };
  }
}

function goesOn(call: Call, part: Part): boolean {
  if (part.id) return part.id === call.id;
  return part.index === null ? !part.name : part.index === call.index;
}

function partsOf(data: JsonObject): Part[] {
  const { tool_calls: calls, function_call: legacy } = data;
  if (Array.isArray(calls)) {
    return calls.map((call) => {
      const fields = objectOf(call);
      return partOf(objectOf(fields.function), textOf(fields.id), numberOf(fields.index));
    });
  }
  if (legacy !== undefined) return [partOf(objectOf(legacy), "", 0)];
  if (typeof data.name !== "string" && typeof data.arguments !== "string") return [];
  return [partOf(data, textOf(data.call_id) || textOf(data.id), numberOf(data.index))];
}

function partOf(fields: JsonObject, id: string, index: number | null): Part {
  const { arguments: text } = fields;
  const json = typeof text === "object" && text !== null ? JSON.stringify(text) : textOf(text);
  return { name: textOf(fields.name), id, index, text: json };
}
