import { removeControls } from '../../core/index.ts'

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

/** The blocks of scripts that are written from right to left (UAX 9: classes R, AL and AN, and what is reserved for them). */
const RIGHT_TO_LEFT =
  '\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}'
/** Words of such a script, with the spaces and punctuation between them. */
const RIGHT_TO_LEFT_WORDS = new RegExp(
  `[${RIGHT_TO_LEFT}](?:[${RIGHT_TO_LEFT}\\s.,'’"-]*[${RIGHT_TO_LEFT}])?`,
  'gu',
)

const ISOLATE = '\u2068'
const END_ISOLATE = '\u2069'

/** Where a value stands: among elements, in an element that contains only text, or as the value of an attribute or a field. */
type Place = 'content' | 'text' | 'value'

function findPlace(before: string): Place {
  if (/=\s*"[^"<>]*$|<textarea\b[^<]*$/.test(before)) return 'value'
  return /<(?:title|option)\b[^<]*$/.test(before) ? 'text' : 'content'
}

/**
 * A text cannot change the order of the text around it (UAX 9): controls are removed, and words from right to left are
 * isolated, by `<bdi>` or, where no element can be, by FSI and PDI.
 */
function renderText(text: string, place: Place): string {
  const plain = removeControls(text)
  const isolated =
    place === 'value' ? plain : plain.replace(RIGHT_TO_LEFT_WORDS, `${ISOLATE}$&${END_ISOLATE}`)
  const escaped = isolated.replace(/[&<>"']/g, sign => ENTITIES[sign] ?? sign)
  return place === 'content'
    ? escaped.replaceAll(ISOLATE, '<bdi>').replaceAll(END_ISOLATE, '</bdi>')
    : escaped
}

function render(part: Part, place: Place): string {
  if (part instanceof Html) return part.markup
  if (Array.isArray(part)) return part.map(one => render(one, place)).join('')
  if (part === null || part === undefined || part === false || part === true) return ''
  return renderText(String(part), place)
}

/** The places of a template are the same each time. */
const knownPlaces = new WeakMap<TemplateStringsArray, readonly Place[]>()

function findPlaces(strings: TemplateStringsArray): readonly Place[] {
  const known = knownPlaces.get(strings)
  if (known) return known
  let before = ''
  const places = strings.map(piece => {
    before += piece
    return findPlace(before)
  })
  knownPlaces.set(strings, places)
  return places
}

/**
 * Escapes every value except `Html`, and isolates it from the text around it. Booleans, `null` and `undefined` become
 * nothing.
 */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const places = findPlaces(strings)
  return new Html(
    strings.reduce((text, piece, i) => text + render(parts[i - 1], places[i - 1] ?? 'content') + piece),
  )
}

/** Wraps constant markup of our own code, never text from a request or a record. */
export function raw(markup: string): Html {
  return new Html(markup)
}
