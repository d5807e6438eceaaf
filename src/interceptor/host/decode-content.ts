import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import { findOwn } from '../../core/index.ts'

const DECODERS: Readonly<Record<string, (body: Buffer) => Buffer>> = {
  gzip: body => gunzipSync(body),
  deflate: body => inflateSync(body),
  br: body => brotliDecompressSync(body),
}

/**
 * The content of a response, which the host may have compressed already, as `@fastify/compress` and proxies do. Throws if it
 * is corrupt. Content in any other encoding stays as it is.
 */
export function decodeContent(body: Buffer, encoding: unknown): Buffer {
  const decode = typeof encoding === 'string' ? findOwn(DECODERS, encoding.toLowerCase()) : undefined
  return decode && body.length > 0 ? decode(body) : body
}
