import { pipeline, type Readable } from 'node:stream'
import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import { runInThreadPool } from '../../turns/index.ts'

export type Encoding = 'br' | 'gzip'

// Fast rather than small: a response is sent once.
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }

const GZIP = { level: 5 }

const compressBrotli = promisify(brotliCompress)

const compressGzip = promisify(gzip)

/** The supported encoding that the client accepts (RFC 9110, 12.5.3). */
export function chooseEncoding(accepted: string | undefined): Encoding | undefined {
  if (accepted === undefined) return undefined
  const listed = accepted.split(',').map(it => it.trim().toLowerCase())
  const accepts = (name: string) =>
    listed.some(it => it === name || (it.startsWith(`${name};`) && !/;\s*q=0(?:\.0*)?$/.test(it)))
  return accepts('br') ? 'br' : accepts('gzip') ? 'gzip' : undefined
}

export function compress(body: string, encoding: Encoding): Promise<Buffer> {
  return runInThreadPool(() => (encoding === 'br' ? compressBrotli(body, BROTLI) : compressGzip(body, GZIP)))
}

interface Document {
  readonly text: string
  readonly forms: Map<Encoding | undefined, Promise<Buffer>>
}

const documents = new Map<string, Document>()

/** A public document in an encoding. It is encoded once: anyone may request it, and it rarely changes. */
export function encodeDocument(kind: string, text: string, encoding: Encoding | undefined): Promise<Buffer> {
  const last = documents.get(kind)
  const document = last?.text === text ? last : { text, forms: new Map() }
  documents.set(kind, document)
  const bytes =
    document.forms.get(encoding) ?? (encoding ? compress(text, encoding) : Promise.resolve(Buffer.from(text)))
  document.forms.set(encoding, bytes)
  bytes.catch(() => document.forms.delete(encoding))
  return bytes
}

/** Each stream may have one piece of work in the thread pool. */
const STREAMS_AT_ONCE = 16
let streams = 0

export function mayCompressStream(): boolean {
  return streams < STREAMS_AT_ONCE
}

/** Compresses while the body arrives. When one stream fails or closes, so does the other. */
export function compressStream(body: Readable, encoding: Encoding): Readable {
  const compressing = encoding === 'br' ? createBrotliCompress(BROTLI) : createGzip(GZIP)
  streams += 1
  return pipeline(body, compressing, () => {
    streams -= 1
  })
}
