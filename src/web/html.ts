/** Safe markup. Only `html` and `raw` create it, so that unescaped text cannot be sent. */
export class Html {
  readonly markup: string
  constructor(markup: string) {
    this.markup = markup
  }
  toString(): string {
    return this.markup
  }
}

type Part = Html | string | number | boolean | null | undefined | readonly Part[]

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function render(part: Part): string {
  if (part instanceof Html) return part.markup
  if (Array.isArray(part)) return part.map(render).join('')
  if (part === null || part === undefined || part === false || part === true) return ''
  return String(part).replace(/[&<>"']/g, sign => ENTITIES[sign] ?? sign)
}

/** Escapes every value except `Html`. Booleans, `null` and `undefined` become nothing. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.reduce((text, piece, i) => text + render(parts[i - 1]) + piece))
}

/** Wraps constant markup of our own code, never text from a request or a record. */
export function raw(markup: string): Html {
  return new Html(markup)
}
