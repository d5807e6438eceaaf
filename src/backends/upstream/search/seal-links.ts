import { Transform } from 'node:stream'

/** What takes the place of a link of the upstream's, by its relation and its address. */
export type LinkSealing = (relation: string, url: string) => string

// R4 Bundle.link: these two and nothing else, in either order.
const LINK =
  /\{\s*(?:"relation"\s*:\s*"([a-z]+)"\s*,\s*"url"\s*:\s*"((?:[^"\\]|\\.)*)"|"url"\s*:\s*"((?:[^"\\]|\\.)*)"\s*,\s*"relation"\s*:\s*"([a-z]+)")\s*\}/g

// Links stand before the entries or after them. Beyond that nothing is held back.
const HEAD = 64 * 1024
const TAIL = 16 * 1024

/** Seals the links of a Bundle that passes by. Latin 1 keeps every byte what it was. */
export function createLinkSealer(seal: LinkSealing): Transform {
  let kept = ''
  let inHead = true
  const pass = (text: string): string => {
    const all = kept + text
    if (inHead && !all.includes('"entry"') && all.length < HEAD) {
      kept = all
      return ''
    }
    const ready = inHead ? sealLinks(all, seal) : all
    inHead = false
    const end = Math.max(ready.length - TAIL, 0)
    kept = ready.slice(end)
    return ready.slice(0, end)
  }
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) =>
      done(null, Buffer.from(pass(chunk.toString('latin1')), 'latin1')),
    flush: done => done(null, Buffer.from(sealLinks(kept, seal), 'latin1')),
  })
}

/** The same of a Bundle in memory. */
export function sealLinks(text: string, seal: LinkSealing): string {
  return text.replace(LINK, (_all, first?: string, url?: string, other?: string, last?: string) => {
    const relation = first ?? last ?? ''
    return JSON.stringify({ relation, url: seal(relation, JSON.parse(`"${url ?? other ?? ''}"`)) })
  })
}
