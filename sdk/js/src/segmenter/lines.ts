/** What a line of Markdown is, told from its beginning, as early as can be. Pure; called by the structure rule. */

import { characterCount } from "./graphemes.js";

const fenceAt = /^ {0,3}(`{3,}|~{3,})([^\n]*)(\n?)/;
const closing = /^ {0,3}(`{3,}|~{3,})[ \t]*\r?\n?$/;
const item = /^(?:[-*+]|\p{Nd}{1,9}[.)])([ \t]?)/u;
const itemMaybe = /^(?:[-*+]|\p{Nd}{1,9}[.)]?)$/u;
const heading = /^#{1,6}(?:[ \t\r\n]|($))/;
/** Without what Python's `\s` does not have, and with what it has. */
const NO_WHITE = "[^\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000{,]";
const languageIn = new RegExp(`^[ \\t]*(${NO_WHITE}{1,40})`, "u");
const WHITE = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const objectLanguageIn = new RegExp(`"lang(?:uage)?"${WHITE}*:${WHITE}*"([^"\\\\\\n]{1,40})"`, "u");
const objectWhite = /[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
const TELLING = "`~#-*+0123456789|{\r\n";
const MAX_INDENT = 3;
const MAX_OBJECT_SPACES = 8;
const OBJECT_PARTS = ["{", '"type"', ":", '"code_block"'];

export type Kind = "undecided" | "blank" | "flow" | "heading" | "item" | "table" | "fence" | "object";

/** `line` begins with the line, and goes on as far as the text is known. What is told of it stays true. */
export function kindOf(line: string): Kind {
  const text = line.replace(/^[ \t]+/, "");
  if (!text) return "undecided";
  const first = text[0]!;
  if (!TELLING.includes(first)) return "flow";
  if (first === "\n" || first === "\r") {
    if (text === "\r") return "undecided";
    return first === "\n" || text[1] === "\n" ? "blank" : "flow";
  }
  if ("-*+0123456789".includes(first)) return kindOfItem(text);
  const indent = line.slice(0, line.length - text.length);
  if (indent.length > MAX_INDENT || indent.includes("\t")) return "flow";
  if (first === "|") return "table";
  if (first === "#") {
    const match = heading.exec(text);
    return match ? (match[1] === undefined ? "heading" : "undecided") : "flow";
  }
  if (first === "{") {
    const match = objectAt(text, 0);
    return match === "no" ? "flow" : match === "partial" ? "undecided" : "object";
  }
  return kindOfFence(text);
}

function kindOfItem(text: string): Kind {
  if (item.exec(text)?.[1]) return "item";
  return itemMaybe.test(text) ? "undecided" : "flow";
}

function kindOfFence(text: string): Kind {
  const match = fenceAt.exec(text);
  if (!match) return ["`", "``", "~", "~~"].includes(text) ? "undecided" : "flow";
  if (match[1]![0] === "`" && match[2]!.includes("`")) return "flow"; // code within a line
  return match[3] ? "fence" : "undecided";
}

/** Whether a code block object begins at `at`, or may begin there when more text comes. */
export function objectAt(text: string, at: number): "no" | "partial" | "yes" {
  let place = at;
  for (const part of OBJECT_PARTS) {
    const found = text.slice(place, place + part.length);
    if (found !== part) return place + found.length === text.length && part.startsWith(found) ? "partial" : "no";
    place += part.length;
    for (
      let spaces = 0;
      spaces < MAX_OBJECT_SPACES && place < text.length && objectWhite.test(text[place]!);
      spaces += 1
    ) {
      place += 1;
    }
  }
  if (place >= text.length) return "partial";
  return text[place] === "," || text[place] === "}" ? "yes" : "no";
}

/** The fence that a line opens or, as far as it is known, may open; else empty. */
export function fenceOf(line: string): string {
  const match = fenceAt.exec(line);
  return !match || (match[1]![0] === "`" && match[2]!.includes("`")) ? "" : match[1]!;
}

/** The first word after the fence: `python`. */
export function languageOf(line: string): string | null {
  const match = fenceAt.exec(line);
  return (match && languageIn.exec(match[2]!)?.[1]) ?? null;
}

/** What a code block object, or a part of one, says in its `language` or `lang`. */
export function objectLanguage(text: string): string | null {
  return objectLanguageIn.exec(text)?.[1] ?? null;
}

/** Whether `line` ends a block: the character that opened it, at least as often, and nothing else. */
export function closes(line: string, fence: string, length: number): boolean {
  const match = closing.exec(line);
  return match !== null && match[1]![0] === fence && match[1]!.length >= length;
}

const MAX_HEAD = 80;

/** The beginning of a line with what follows; null: too much to tell what the line is. */
export function joined(head: string | null, more: string): string | null {
  return head === null || characterCount(head) + characterCount(more) > MAX_HEAD ? null : head + more;
}

/** As much of a line as tells what it is. */
export function headOf(line: string): string {
  return [...line].slice(0, MAX_HEAD).join("");
}
