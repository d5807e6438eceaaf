import { type Readable, Transform } from 'node:stream'
import {
  brotliDecompress,
  brotliDecompressSync,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  gunzip,
  gunzipSync,
  inflate,
  inflateSync,
} from 'node:zlib'
import { hasCode } from '../../../core/index.ts'
import { runInThreadPool } from '../../../turns/index.ts'

type Limit = { readonly maxOutputLength: number }

interface Decoder {
  unpack(body: Buffer, limit: Limit, done: (error: Error | null, result: Buffer) => void): void
  unpackSync(body: Buffer, limit: Limit): Buffer
  createStream(): Transform
}

const GZIP: Decoder = { unpack: gunzip, unpackSync: gunzipSync, createStream: createGunzip }

const DECODERS: ReadonlyMap<string, Decoder> = new Map([
  ['gzip', GZIP],
  ['x-gzip', GZIP],
  ['deflate', { unpack: inflate, unpackSync: inflateSync, createStream: createInflate }],
  [
    'br',
    {
      unpack: brotliDecompress,
      unpackSync: brotliDecompressSync,
      createStream: createBrotliDecompress,
    },
  ],
])

const PLAIN: ReadonlySet<string> = new Set(['', 'identity'])

/** Undefined for a body that cannot be decoded. */
export type Decoded = Buffer | 'too-large' | undefined

/** Up to this size, another thread costs more time than it saves. */
const SHORT = 4 * 1024
const SHORT_DECODED = 64 * 1024

/** The decompressed body, up to a number of bytes. */
export function decode(body: Buffer, encoding: string, limit: number): Decoded | Promise<Decoded> {
  if (PLAIN.has(encoding)) return body.length <= limit ? body : 'too-large'
  const decoder = DECODERS.get(encoding)
  if (!decoder) return undefined
  const short = body.length > SHORT ? 'too-large' : decodeShort(body, decoder, Math.min(limit, SHORT_DECODED))
  return short === 'too-large' ? decodeLong(body, decoder, limit) : short
}

function decodeShort(body: Buffer, { unpackSync }: Decoder, limit: number): Decoded {
  try {
    return unpackSync(body, { maxOutputLength: limit })
  } catch (error) {
    return explain(error)
  }
}

function decodeLong(body: Buffer, { unpack }: Decoder, limit: number): Promise<Decoded> {
  return runInThreadPool(
    () =>
      new Promise(resolve => {
        unpack(body, { maxOutputLength: limit }, (error, result) => resolve(error ? explain(error) : result))
      }),
  )
}

function explain(error: unknown): 'too-large' | undefined {
  const isTooLarge = hasCode(error, 'ERR_BUFFER_TOO_LARGE')
  return isTooLarge ? 'too-large' : undefined
}

/** Decodes a body that is a stream. Undefined for an unknown encoding. */
export function decodeStream(body: Readable, encoding: string): Readable | undefined {
  if (PLAIN.has(encoding)) return body
  const decoder = DECODERS.get(encoding)
  return decoder && pipe(body, decoder.createStream())
}

/** Passes a number of bytes on, and fails if there are more. */
export function createByteLimit(bytes: number): Transform {
  let left = bytes
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length
      if (left < 0) done(new Error(`the response has more than ${bytes} bytes`))
      else done(null, chunk)
    },
  })
}

/** Connects two streams so that an error in one ends the other. */
export function pipe<T extends NodeJS.ReadWriteStream & { destroy(error?: Error): unknown }>(
  from: Readable,
  into: T,
): T {
  from.on('error', error => into.destroy(error))
  into.on('close', () => from.destroy())
  from.pipe(into)
  return into
}
