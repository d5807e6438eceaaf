import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { type FhirProblem, fail } from '../../fhir/index.ts'

const decompress = promisify(gunzip)

/** The body of a request before it was compressed, up to a number of bytes. What grows beyond them is given up there. */
export async function decodeBody(
  body: Buffer,
  encoding: string,
  limit: number,
): Promise<Buffer | FhirProblem> {
  switch (encoding.trim().toLowerCase()) {
    case '':
    case 'identity':
      return body
    case 'gzip':
    case 'x-gzip':
      try {
        return await decompress(body, { maxOutputLength: limit })
      } catch (error) {
        return isTooLong(error)
          ? fail({ problem: 'body-too-large', limit })
          : fail({ problem: 'malformed-body', text: 'Cannot read body: it is not valid gzip' })
      }
    default:
      return fail({ problem: 'wrong-content-encoding', expected: 'gzip' })
  }
}

function isTooLong(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
}
