import { createReadStream } from 'node:fs'
import { createGunzip } from 'node:zlib'
import { findCode } from '../core/index.ts'

// A kibibyte of gzip can hold a mebibyte of text, so that small reads limit the memory.
const CHUNK_BYTES = 32 * 1024

/**
 * The bytes of a file without a byte order mark, unpacked if its first bytes are those of gzip. `onRead` is called with
 * the number of bytes as stored.
 */
export async function* readBytes(
  path: string,
  onRead: (bytes: number) => void = () => {},
): AsyncGenerator<Buffer> {
  const stored = countBytes(createReadStream(path, { highWaterMark: CHUNK_BYTES }), onRead)
  const { value: first } = await stored.next()
  if (first === undefined) return
  const whole = putBack(first, stored)
  yield* skipMark(isGzip(first) ? unpack(whole) : whole)
}

async function* countBytes(
  source: AsyncIterable<Buffer>,
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    onRead(chunk.length)
    yield chunk
  }
}

async function* putBack(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield first
  yield* rest
}

function isGzip(bytes: Buffer): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

/** Unpacks without a pipe: when the data end early, the bytes before are still yielded, and then it throws. */
async function* unpack(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
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

async function* skipMark(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let atStart = true
  for await (const chunk of source) {
    yield atStart && chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf ? chunk.subarray(3) : chunk
    atStart = false
  }
}

const READ_FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'There is no such file or folder',
  EACCES: 'Permission is denied',
  EPERM: 'Permission is denied',
  EISDIR: 'It is a folder',
  EMFILE: 'Too many files are open',
  EIO: 'The disk cannot be read',
  ELOOP: 'Links lead in a circle',
  Z_BUF_ERROR: 'The gzip data end early: the file is cut off',
  Z_DATA_ERROR: 'The gzip data are damaged',
}

/** Why a file cannot be read. */
export function describeReadFailure(error: unknown): string {
  const code = findCode(error) ?? ''
  return READ_FAILURES[code] ?? (code === '' ? 'It cannot be read' : `It cannot be read (${code})`)
}

/** Whether an error comes from reading a file; any other is a bug and is not caught. */
export function isReadFailure(error: unknown): boolean {
  return /^(E[A-Z]+|Z_[A-Z_]+)$/.test(findCode(error) ?? '')
}
