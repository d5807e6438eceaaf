const elements: ReadonlySet<string> = new Set(
  (
    'a abbr acronym b big blockquote br caption cite code col colgroup dd dfn div dl dt em h1 h2 h3 h4 h5 h6 hr i ' +
    'img li ol p pre q samp small span strong sub sup table tbody td tfoot th thead tr tt u ul var'
  ).split(' '),
)

const attributes: ReadonlySet<string> = new Set(
  (
    'abbr accesskey align alt axis border bgcolor cellhalign cellpadding cellspacing cellvalign char charoff charset ' +
    'cite class colspan compact coords dir frame headers height href hreflang hspace id idref lang longdesc name ' +
    'nowrap rel rev rowspan rules scope shape span src start style summary tabindex title type valign value vspace ' +
    'width xml:lang xml:space xmlns'
  ).split(' '),
)

const tagName = /[a-z][a-z0-9]*/y
const rest = /\s*(\/?)>/y
const attribute = /\s+([A-Za-z:]+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y

/**
 * Whether a narrative is one `div` of the formatting that R4 allows (txt-1, txt-2) and has content: no scripts, no
 * event attributes, no `javascript:` addresses. Whoever shows a narrative may rely on that. Linear in its length.
 */
export function isNarrative(text: string): boolean {
  const trimmed = text.trim()
  if (!/^<div[\s>/]/.test(trimmed) || !trimmed.endsWith('>')) return false
  const open: string[] = []
  let content = false
  for (let at = 0; at < trimmed.length; ) {
    const next = trimmed.indexOf('<', at)
    const until = next < 0 ? trimmed.length : next
    content ||= trimmed.slice(at, until).trim() !== ''
    if (next < 0) return false
    const tag = readTag(trimmed, next)
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

function readTag(text: string, start: number): Tag | undefined {
  if (text.startsWith('<!--', start)) return readComment(text, start)
  const closing = text[start + 1] === '/'
  const name = readName(text, start + (closing ? 2 : 1))
  if (!elements.has(name)) return undefined
  const after = start + (closing ? 2 : 1) + name.length
  const end = closing ? after : skipAttributes(text, after)
  if (end === undefined) return undefined
  rest.lastIndex = end
  const found = rest.exec(text)
  if (found === null || (closing && found[1] === '/')) return undefined
  return { name, kind: closing ? 'close' : found[1] === '/' ? 'whole' : 'open', end: rest.lastIndex }
}

function readComment(text: string, start: number): Tag | undefined {
  const end = text.indexOf('-->', start + 4)
  return end < 0 ? undefined : { name: '', kind: 'whole', end: end + 3 }
}

function readName(text: string, start: number): string {
  tagName.lastIndex = start
  return tagName.exec(text)?.[0] ?? ''
}

function skipAttributes(text: string, start: number): number | undefined {
  let at = start
  attribute.lastIndex = at
  for (let found = attribute.exec(text); found !== null; found = attribute.exec(text)) {
    if (!isAttribute(found[1] ?? '', found[2] ?? found[3] ?? '')) return undefined
    at = attribute.lastIndex
  }
  return at
}

function isAttribute(name: string, value: string): boolean {
  if (!attributes.has(name)) return false
  return (name !== 'href' && name !== 'src') || isHarmlessAddress(value)
}

/** Scripts hide behind entities and control characters too, so that only known schemes and relative addresses pass. */
function isHarmlessAddress(address: string): boolean {
  const scheme = /^([^/?#:]*):/.exec(address)?.[1]
  if (scheme === undefined) return !/&(?:colon|tab|newline|#)/i.test(address)
  return (
    /^(?:https?|ftp|mailto|tel|urn|cid)$/i.test(scheme) ||
    /^data:\s*image\/(?:png|gif|jpeg|webp)[;,]/i.test(address)
  )
}
