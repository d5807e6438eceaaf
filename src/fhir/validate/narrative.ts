import { findOwn } from '../../core/index.ts'

const elements: ReadonlySet<string> = new Set(
  (
    'a abbr acronym address b bdo big blockquote br caption cite code col colgroup dd dfn div dl dt em h1 h2 h3 h4 h5 h6 hr i ' +
    'img kbd li ol p pre q samp small span strong sub sup table tbody td tfoot th thead tr tt u ul var'
  ).split(' '),
)

const attributes: ReadonlySet<string> = new Set(
  (
    'abbr accesskey align alt axis border bgcolor cellhalign cellpadding cellspacing cellvalign char charoff charset ' +
    'cite class colspan compact coords dir frame headers height href hreflang hspace id idref lang longdesc name ' +
    'nowrap rel rev rowspan rules scope shape span src start style summary tabindex title type valign value vspace ' +
    'width xml:lang xml:space'
  ).split(' '),
)

const tagName = /[a-z][a-z0-9]*/y
const rest = /\s*(\/?)>/y
const attribute = /\s+([A-Za-z_][\w:.-]*)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y

const XHTML = 'http://www.w3.org/1999/xhtml'
// XML 1.0, 2.2
const notCharacters = /[^\t\n\r\u0020-\ufffd]/
// Without a document type, XML has five named entities (XML 1.0, 4.6).
const entity = /&(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[\da-fA-F]{1,6});/y

/**
 * Whether a narrative is well-formed XML: one `div` in the XHTML namespace with the formatting that R4 allows (txt-1) and
 * some content (txt-2). It has no scripts, event attributes or `javascript:` URLs, so that pages may show it. Linear in
 * its length.
 */
export function isNarrative(text: string): boolean {
  const trimmed = text.trim()
  if (!/^<div[\s>/]/.test(trimmed) || !trimmed.endsWith('>')) return false
  if (notCharacters.test(trimmed) || !trimmed.isWellFormed()) return false
  const open: string[] = []
  let content = false
  for (let at = 0; at < trimmed.length; ) {
    const next = trimmed.indexOf('<', at)
    const until = next < 0 ? trimmed.length : next
    const between = trimmed.slice(at, until)
    content ||= between.trim() !== ''
    if (next < 0 || !isText(between)) return false
    const tag = readTag(trimmed, next, open.length === 0)
    if (tag === undefined) return false
    if (tag.kind === 'open') open.push(tag.name)
    if (tag.kind === 'close' && open.pop() !== tag.name) return false
    content ||= tag.name === 'img'
    at = tag.end
    if (open.length === 0) return content && at === trimmed.length
  }
  return false
}

interface Tag {
  readonly name: string
  readonly kind: 'open' | 'close' | 'whole'
  readonly end: number
}

function readTag(text: string, start: number, isRoot: boolean): Tag | undefined {
  if (text.startsWith('<!--', start)) return readComment(text, start)
  const closing = text[start + 1] === '/'
  const name = readName(text, start + (closing ? 2 : 1))
  if (!elements.has(name)) return undefined
  const after = start + (closing ? 2 : 1) + name.length
  const end = closing ? after : skipAttributes(text, after, isRoot)
  if (end === undefined) return undefined
  rest.lastIndex = end
  const found = rest.exec(text)
  if (found === null || (closing && found[1] === '/')) return undefined
  return { name, kind: closing ? 'close' : found[1] === '/' ? 'whole' : 'open', end: rest.lastIndex }
}

function readComment(text: string, start: number): Tag | undefined {
  const end = text.indexOf('--', start + 4)
  return end < 0 || text[end + 2] !== '>' ? undefined : { name: '', kind: 'whole', end: end + 3 }
}

function readName(text: string, start: number): string {
  tagName.lastIndex = start
  return tagName.exec(text)?.[0] ?? ''
}

/** The index after the attributes; undefined if one is not allowed or repeated, or the root has no namespace. */
function skipAttributes(text: string, start: number, isRoot: boolean): number | undefined {
  if (text[start] === '>' && !isRoot) return start
  const names = new Set<string>()
  let at = start
  attribute.lastIndex = at
  for (let found = attribute.exec(text); found !== null; found = attribute.exec(text)) {
    const [, name = '', quoted, single = ''] = found
    if (names.has(name) || !isAttribute(name, quoted ?? single)) return undefined
    names.add(name)
    at = attribute.lastIndex
  }
  return isRoot && !names.has('xmlns') ? undefined : at
}

function isAttribute(name: string, value: string): boolean {
  if (!isText(value)) return false
  if (name === 'xmlns') return value === XHTML
  if (name.startsWith('xmlns:')) return value !== ''
  if (!attributes.has(name)) return false
  return (name !== 'href' && name !== 'src') || isHarmlessUrl(decodeEntities(value))
}

/** Whether characters between tags or quotation marks are well-formed XML. */
function isText(text: string): boolean {
  if (text.includes(']]>')) return false
  for (let at = text.indexOf('&'); at >= 0; at = text.indexOf('&', entity.lastIndex)) {
    entity.lastIndex = at
    if (!entity.test(text) || !isEntity(text.slice(at + 1, entity.lastIndex - 1))) return false
  }
  return true
}

/** Whether a name, or the number of a code point (`#60`, `#x3c`), stands for a character of XML 1.0, 2.2. */
function isEntity(name: string): boolean {
  if (!name.startsWith('#')) return true
  const code = name[1] === 'x' ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
  if (code < 0x20) return code === 0x9 || code === 0xa || code === 0xd
  return code < 0xd800 || (code > 0xdfff && code < 0xfffe) || (code > 0xffff && code <= 0x10ffff)
}

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function decodeEntities(text: string): string {
  return text.replace(/&(?:([a-z]+)|#(x?)([\da-fA-F]+));/g, (_all, name: string | undefined, hex, digits) =>
    name === undefined
      ? String.fromCodePoint(Number.parseInt(digits, hex === 'x' ? 16 : 10))
      : (findOwn(NAMED, name) ?? ''),
  )
}

/** Browsers ignore control characters in a scheme, so only known schemes and relative URLs are allowed. */
function isHarmlessUrl(url: string): boolean {
  const scheme = /^([^/?#:]*):/.exec(url)?.[1]
  if (scheme === undefined) return true
  return (
    /^(?:https?|ftp|mailto|tel|urn|cid)$/i.test(scheme) ||
    /^data:\s*image\/(?:png|gif|jpeg|webp)[;,]/i.test(url)
  )
}
