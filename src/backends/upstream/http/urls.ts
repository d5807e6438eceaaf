import { Transform } from 'node:stream'

/** Turns addresses of the upstream into ours and back, so that neither side sees the other's. */
export interface Addresses {
  /** Text from the upstream with our base in the place of its own. */
  outward(text: string): string
  /** Text for the upstream with its base in the place of ours. */
  inward(text: string): string
  /** What of an address of the upstream is below its base (`/Patient/1?a=b`); undefined when it is not its own. */
  below(address: string): string | undefined
  /** The same address as ours, or undefined. */
  outwardAddress(address: string): string | undefined
  /** `outward` for bytes that pass by. */
  outwardStream(): Transform
}

// What may follow a base where it is one: not a letter or digit that makes it another address.
const BOUNDARY = '(?![A-Za-z0-9_~%-])'

/** The upstream may call itself by other addresses than the one that it is reached by. */
export function createAddresses(baseUrl: string, upstreamUrls: readonly [string, ...string[]]): Addresses {
  const [upstreamUrl] = upstreamUrls
  // Longest first, so that a base is not cut short by one that it begins with.
  const bases = upstreamUrls.toSorted((a, b) => b.length - a.length)
  const anyBase = bases.map(pattern).join('|')
  const theirs = new RegExp(`(?:${anyBase})${BOUNDARY}`, 'g')
  const ours = new RegExp(`${pattern(baseUrl)}${BOUNDARY}`, 'g')
  const outward = (text: string) => (mayHold(text, bases) ? text.replace(theirs, () => baseUrl) : text)

  function below(address: string): string | undefined {
    const whole = URL.parse(address, `${upstreamUrl}/`)
    const base = whole && bases.find(it => isUnder(whole.href, it))
    return typeof base === 'string' ? whole?.href.slice(base.length) : undefined
  }

  return {
    outward,
    inward: text => (mayHold(text, [baseUrl]) ? text.replace(ours, () => upstreamUrl) : text),
    below,
    outwardAddress(address) {
      const path = below(address)
      return path === undefined ? undefined : baseUrl + path
    },
    outwardStream: () => replacing(theirs, baseUrl, Math.max(...bases.map(it => it.length)) * 2),
  }
}

/** JSON may write `/` as `\/`. */
function pattern(address: string): string {
  return RegExp.escape(address).replaceAll('\\/', '\\\\?\\/')
}

function mayHold(text: string, bases: readonly string[]): boolean {
  return bases.some(base => text.includes(base)) || text.includes('\\/')
}

function isUnder(href: string, base: string): boolean {
  return href.startsWith(base) && /^(?:[/?#]|$)/.test(href.slice(base.length))
}

/** Holds back as much of the end as may be the begin of an address. Latin 1 keeps every byte what it was. */
function replacing(addresses: RegExp, by: string, longest: number): Transform {
  let kept = ''
  const passed = (text: string): string => {
    const end = Math.max(lastEnd(text, addresses), text.length - longest - 1)
    kept = text.slice(end)
    return text.slice(0, end).replace(addresses, () => by)
  }
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) =>
      done(null, Buffer.from(passed(kept + chunk.toString('latin1')), 'latin1')),
    flush: done =>
      done(
        null,
        Buffer.from(
          kept.replace(addresses, () => by),
          'latin1',
        ),
      ),
  })
}

/** Where the last address ends that is followed by something, so that it is surely one. */
function lastEnd(text: string, addresses: RegExp): number {
  let end = 0
  for (const found of text.matchAll(addresses)) {
    const after = found.index + found[0].length
    if (after < text.length) end = after
  }
  return end
}
