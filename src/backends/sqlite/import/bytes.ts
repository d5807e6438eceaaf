import { createReadStream } from 'node:fs'
import { createGunzip } from 'node:zlib'

// A kibibyte of gzip can hold a mebibyte of text: small reads bound what one of them becomes.
const readBytes = 32 * 1024

/**
 * The bytes of a file, unpacked where it is gzip (told by its first bytes, not its name) and without a byte order mark.
 * `onRead` hears of the bytes as stored.
 */
export async function* bytesOf(
  path: string,
  onRead: (bytes: number) => void = () => {},
): AsyncGenerator<Buffer> {
  const stored = counted(createReadStream(path, { highWaterMark: readBytes }), onRead)
  const { value: first } = await stored.next()
  if (first === undefined) return
  const whole = withFirst(first, stored)
  yield* withoutMark(isGzip(first) ? unpacked(whole) : whole)
}

async function* counted(
  source: AsyncIterable<Buffer>,
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    onRead(chunk.length)
    yield chunk
  }
}

async function* withFirst(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield first
  yield* rest
}

function isGzip(bytes: Buffer): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

/** Unpacks by hand instead of by pipe: when the data break off, what came before is still handed on, then it throws. */
async function* unpacked(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip()
  const ready: Buffer[] = []
  let failure: Error | undefined
  let wake = () => {}
  gunzip.on('data', (chunk: Buffer) => ready.push(chunk))
  gunzip.on('error', error => {
    failure = error
    wake()
  })
  // A stream that has failed calls back neither a write nor its end.
  const until = (begin: (done: () => void) => void) =>
    new Promise<void>(done => {
      wake = done
      if (failure === undefined) begin(done)
      else done()
    })
  try {
    for await (const chunk of source) {
      await until(done => gunzip.write(chunk, () => done()))
      yield* ready.splice(0)
      if (failure !== undefined) throw failure
    }
    await until(done => gunzip.once('end', done).end())
    yield* ready.splice(0)
    if (failure !== undefined) throw failure
  } finally {
    gunzip.destroy()
  }
}

async function* withoutMark(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let atStart = true
  for await (const chunk of source) {
    yield atStart && chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf ? chunk.subarray(3) : chunk
    atStart = false
  }
}
