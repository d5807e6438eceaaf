import type { Readable } from 'node:stream'
import {
  brotliDecompress,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  gunzip,
  inflate,
} from 'node:zlib'

/** The decompressed body, up to a number of bytes; undefined if it cannot be decompressed. */
export async function decode(
  body: Buffer,
  encoding: string,
  limit: number,
): Promise<Buffer | 'too-large' | undefined> {
  switch (encoding) {
    case '':
    case 'identity':
      return body.length <= limit ? body : 'too-large'
    case 'gzip':
    case 'x-gzip':
      return decompress(gunzip, body, limit)
    case 'deflate':
      return decompress(inflate, body, limit)
    case 'br':
      return decompress(brotliDecompress, body, limit)
    default:
      return undefined
  }
}

/** The same for a stream. */
export function decodeStream(body: Readable, encoding: string): Readable | undefined {
  switch (encoding) {
    case '':
    case 'identity':
      return body
    case 'gzip':
    case 'x-gzip':
      return pipe(body, createGunzip())
    case 'deflate':
      return pipe(body, createInflate())
    case 'br':
      return pipe(body, createBrotliDecompress())
    default:
      return undefined
  }
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

type Unpack = (
  body: Buffer,
  options: { maxOutputLength: number },
  done: (error: Error | null, result: Buffer) => void,
) => void

function decompress(unpack: Unpack, body: Buffer, limit: number): Promise<Buffer | 'too-large' | undefined> {
  return new Promise(resolve => {
    unpack(body, { maxOutputLength: limit }, (error, result) => {
      const isTooLarge = error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
      resolve(isTooLarge ? 'too-large' : error ? undefined : result)
    })
  })
}
