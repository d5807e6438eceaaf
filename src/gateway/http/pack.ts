import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import { joined } from '../upstream/decode.ts'

type Encoding = 'br' | 'gzip' | undefined

// Quick rather than small: what is packed is sent once.
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }
const GZIP = { level: 5 }

const brotliOf = promisify(brotliCompress)
const gzipOf = promisify(gzip)

/** How the caller takes its answers (RFC 9110, 12.5.3), of what is known here. */
export function chooseEncoding(accepted: string | undefined): Encoding {
  const taken = (accepted ?? '').split(',').map(it => it.trim().toLowerCase())
  const takes = (name: string) =>
    taken.some(it => it === name || (it.startsWith(`${name};`) && !/;\s*q=0(?:\.0*)?$/.test(it)))
  return takes('br') ? 'br' : takes('gzip') ? 'gzip' : undefined
}

export async function packed(body: string, encoding: Encoding): Promise<string | Buffer> {
  switch (encoding) {
    case 'br':
      return brotliOf(body, BROTLI)
    case 'gzip':
      return gzipOf(body, GZIP)
    case undefined:
      return body
  }
}

export function packedStream(body: Readable, encoding: Encoding): Readable {
  switch (encoding) {
    case 'br':
      return joined(body, createBrotliCompress(BROTLI))
    case 'gzip':
      return joined(body, createGzip(GZIP))
    case undefined:
      return body
  }
}
