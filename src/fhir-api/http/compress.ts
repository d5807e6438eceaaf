import { pipeline, type Readable } from 'node:stream'
import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'

export type Encoding = 'br' | 'gzip'

// Quick rather than small: a response is sent once.
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }
const GZIP = { level: 5 }

const compressBrotli = promisify(brotliCompress)
const compressGzip = promisify(gzip)

/** The encoding that the client accepts (RFC 9110, 12.5.3), of those that are known here. */
export function chooseEncoding(accepted: string | undefined): Encoding | undefined {
  if (accepted === undefined) return undefined
  const listed = accepted.split(',').map(it => it.trim().toLowerCase())
  const accepts = (name: string) =>
    listed.some(it => it === name || (it.startsWith(`${name};`) && !/;\s*q=0(?:\.0*)?$/.test(it)))
  return accepts('br') ? 'br' : accepts('gzip') ? 'gzip' : undefined
}

export function compress(body: string, encoding: Encoding): Promise<Buffer> {
  return encoding === 'br' ? compressBrotli(body, BROTLI) : compressGzip(body, GZIP)
}

/** Compresses as the body comes. When either end fails or closes, so does the other. */
export function compressStream(body: Readable, encoding: Encoding): Readable {
  const compressing = encoding === 'br' ? createBrotliCompress(BROTLI) : createGzip(GZIP)
  return pipeline(body, compressing, () => undefined)
}
