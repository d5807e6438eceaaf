import { Readable } from 'node:stream'
import type { StreamedContent } from '../../../fhir-api/index.ts'

/** The JSON of a Binary whose content still arrives. */
export interface BinaryBody {
  readonly body: Readable
  /** In bytes, if it is known. */
  readonly length: number | undefined
}

/** Adds content as base64 to the JSON of a Binary without data. */
export function streamBinary(binary: string, content: StreamedContent): BinaryBody {
  const start = `${binary.slice(0, -1)},"data":"`
  const length =
    content.length === undefined
      ? undefined
      : Buffer.byteLength(start) + Math.ceil(content.length / 3) * 4 + END.length
  return { body: Readable.from(encode(start, content), { objectMode: false }), length }
}

const END = '"}'

async function* encode(start: string, content: StreamedContent): AsyncGenerator<string> {
  yield start
  let rest = Buffer.alloc(0)
  for await (const chunk of content) {
    const bytes = Buffer.concat([rest, chunk])
    // Three bytes are four characters: only the last ones are padded.
    const whole = bytes.length - (bytes.length % 3)
    rest = bytes.subarray(whole)
    yield bytes.toString('base64', 0, whole)
  }
  yield rest.toString('base64') + END
}
