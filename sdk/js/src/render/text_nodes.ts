/** Text that only grows, in a DOM element: an append touches one short text node, never what is there already. */

/** The browser lays out a text node as a whole, so they are kept short; cut at line ends where there are any. */
const NODE_CHARS = 4_096;
const MAX_NODE_CHARS = 2 * NODE_CHARS;

export class TextNodes {
  readonly #element: Node;
  readonly #document: Document;
  #nodes: Text[] = [];

  /** The element should hold nothing else that this may come between: text is put at its end. */
  constructor(element: Node) {
    this.#element = element;
    this.#document = element.ownerDocument ?? (element as Document);
  }

  append(text: string): void {
    let rest = text;
    const last = this.#nodes[this.#nodes.length - 1];
    if (last) {
      const room = placeToCut(rest, Math.max(0, NODE_CHARS - last.length), MAX_NODE_CHARS - last.length);
      if (room > 0) last.appendData(rest.slice(0, room));
      rest = rest.slice(Math.max(0, room));
    }
    if (!rest) return;
    const fragment = this.#document.createDocumentFragment();
    while (rest) {
      const end = placeToCut(rest, NODE_CHARS, MAX_NODE_CHARS);
      const node = this.#document.createTextNode(rest.slice(0, end));
      this.#nodes.push(node);
      fragment.append(node);
      rest = rest.slice(end);
    }
    this.#element.appendChild(fragment);
  }

  /** What was there is no longer true. What both texts begin with stays as it is. */
  replace(text: string): void {
    let kept = 0;
    let at = 0;
    while (kept < this.#nodes.length && text.startsWith(this.#nodes[kept]?.data ?? "\0", at)) {
      at += this.#nodes[kept]?.length ?? 0;
      kept += 1;
    }
    for (const node of this.#nodes.splice(kept)) node.remove();
    if (at < text.length) this.append(text.slice(at));
  }
}

/** All of a short text; else after the first line end from `from` on, else at `to`, not within a character. */
function placeToCut(text: string, from: number, to: number): number {
  if (text.length <= from) return text.length;
  const newline = text.indexOf("\n", Math.max(0, from - 1));
  const end = newline >= 0 && newline < to ? newline + 1 : Math.min(to, text.length);
  return end > 0 && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800 ? end - 1 : end;
}
