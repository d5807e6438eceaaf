import { type Readable, Transform } from 'node:stream'
import { type NativeContent, readContent } from './request-body.ts'
import { JsonSkimmer } from './skim-json.ts'

const DATA = /"data"\s*:\s*$/

/** The content of a Binary that is streamed as JSON. `partial` is its JSON without long strings. */
export function streamContent(partial: string, json: Readable): NativeContent {
  const { contentType } = readContent(partial)
  const decode = createDecoder()
  const decoding: Transform = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      skimmer.push(chunk)
      done()
    },
    flush: done => done(null, decode('', true)),
  })
  const skimmer = new JsonSkimmer({
    longest: 0,
    replace: before => (DATA.test(before) ? '' : undefined),
    add: bytes => decoding.push(decode(bytes.toString('latin1'))),
  })
  json.on('error', error => decoding.destroy(error))
  decoding.on('close', () => json.destroy())
  return { contentType, bytes: json.pipe(decoding) }
}

/** Decodes base64 as it is written in JSON: with escapes, which may be split, in groups of four characters. */
function createDecoder(): (json: string, isLast?: boolean) => Buffer {
  let rest = ''
  let partOfEscape = ''
  return (json, isLast = false) => {
    const all = partOfEscape + json
    partOfEscape = /\\(?:u[\da-f]{0,3})?$/i.exec(all)?.[0] ?? ''
    const text = rest + decodeEscapes(all.slice(0, all.length - partOfEscape.length))
    const end = isLast ? text.length : text.length - (text.length % 4)
    rest = text.slice(end)
    return Buffer.from(text.slice(0, end), 'base64')
  }
}

function decodeEscapes(json: string): string {
  const text = json.includes('\\')
    ? json.replace(/\\(?:u([\da-f]{4})|(.))/gi, (_all, code?: string, letter?: string) =>
        code === undefined ? (letter === '/' ? '/' : '') : String.fromCharCode(Number.parseInt(code, 16)),
      )
    : json
  return text.replace(/\s+/g, '')
}
