import { Transform } from 'node:stream'

/** Replaces the upstream's base URL by the gateway's and back, so that neither side sees the other's. */
export interface UrlRewriter {
  /** Text from the upstream with the gateway's base URL. */
  toPublic(text: string): string
  /** Text for the upstream with its own base URL. */
  toUpstream(text: string): string
  /** The JSON of a body for the upstream. References with the gateway's base URL become `Type/id`: some servers take their own URL for another server's. */
  toUpstreamBody(json: string): string
  /** The value of a search parameter for the upstream: references with the gateway's base URL become `Type/id`. */
  toLocal(value: string): string
  /** The part of an upstream's URL below its base (`/Patient/1?a=b`); undefined for any other URL. */
  getPathBelowBase(url: string): string | undefined
  /** An upstream's URL below the gateway's base URL; undefined for any other URL. */
  toPublicUrl(url: string): string | undefined
  /** `toPublic` for a stream. */
  createPublicStream(): Transform
}

// Where another letter or digit follows, it is another URL.
const BOUNDARY = '(?![A-Za-z0-9_~%-])'

/** The upstream may use other base URLs for itself than the one that the gateway sends requests to. */
export function createUrlRewriter(
  baseUrl: string,
  upstreamUrls: readonly [string, ...string[]],
): UrlRewriter {
  const [upstreamUrl] = upstreamUrls
  // Longest first: one base URL may be the beginning of another.
  const bases = upstreamUrls.toSorted((a, b) => b.length - a.length)
  const theirs = new RegExp(`(?:${bases.map(toPattern).join('|')})${BOUNDARY}`, 'g')
  const ours = new RegExp(`${toPattern(baseUrl)}${BOUNDARY}`, 'g')

  const toUpstream = (text: string) =>
    mayContain(text, [baseUrl]) ? text.replace(ours, () => upstreamUrl) : text
  const reference = new RegExp(`("reference":")${toPattern(baseUrl)}\\\\?/(?=[A-Z])`, 'g')
  const listed = new RegExp(`(^|,)${RegExp.escape(baseUrl)}/(?=[A-Z][A-Za-z]*/[A-Za-z0-9.-]+(?:,|$))`, 'g')

  function getPathBelowBase(url: string): string | undefined {
    const whole = URL.parse(url, `${upstreamUrl}/`)
    const base = whole && bases.find(it => isBelow(whole.href, it))
    return typeof base === 'string' ? whole?.href.slice(base.length) : undefined
  }

  return {
    toPublic: text => (mayContain(text, bases) ? text.replace(theirs, () => baseUrl) : text),
    toUpstream,
    toUpstreamBody: json =>
      mayContain(json, [baseUrl]) ? toUpstream(json.replace(reference, (_all, name: string) => name)) : json,
    toLocal: value => toUpstream(value.replace(listed, (_all, start: string) => start)),
    getPathBelowBase,
    toPublicUrl(url) {
      const path = getPathBelowBase(url)
      return path === undefined ? undefined : baseUrl + path
    },
    createPublicStream: () =>
      createReplaceStream(theirs, () => baseUrl, Math.max(...bases.map(it => it.length)) * 2),
  }
}

/** JSON may write `/` as `\/`. */
function toPattern(url: string): string {
  return RegExp.escape(url).replaceAll('\\/', '\\\\?\\/')
}

function mayContain(text: string, bases: readonly string[]): boolean {
  return bases.some(base => text.includes(base)) || text.includes('\\/')
}

function isBelow(href: string, base: string): boolean {
  return href.startsWith(base) && /^(?:[/?#]|$)/.test(href.slice(base.length))
}

/** Replaces matches of up to a length. Holds back the end of each chunk, in which one may begin. Latin 1 keeps every byte. */
export function createReplaceStream(
  pattern: RegExp,
  toReplacement: (match: string) => string,
  longest: number,
): Transform {
  let kept = ''
  const replace = (text: string) => text.replace(pattern, toReplacement)
  const pass = (text: string): string => {
    const end = Math.max(findLastEnd(text, pattern), text.length - longest - 1)
    kept = text.slice(end)
    return replace(text.slice(0, end))
  }
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) =>
      done(null, Buffer.from(pass(kept + chunk.toString('latin1')), 'latin1')),
    flush: done => done(null, Buffer.from(replace(kept), 'latin1')),
  })
}

/** The end of the last match that another character follows: only then it is complete. */
function findLastEnd(text: string, pattern: RegExp): number {
  let end = 0
  for (const found of text.matchAll(pattern)) {
    const after = found.index + found[0].length
    if (after < text.length) end = after
  }
  return end
}
