import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { describeReadFailure, readBytes } from './read-bytes.ts'
import { temporaryFolder } from './testing/files.ts'

const folder = temporaryFolder()
// Random text, so that the compressed file is long enough to truncate.
const long = Array.from({ length: 40_000 }, (_, at) => `${at} ${Math.imul(at, 0x9e3779b1) >>> 0}\n`).join('')

async function read(path: string): Promise<{ text: string; failure: unknown; read: number }> {
  const chunks: Buffer[] = []
  let bytes = 0
  let failure: unknown
  try {
    for await (const chunk of readBytes(path, more => (bytes += more))) chunks.push(chunk)
  } catch (error) {
    failure = error
  }
  return { text: Buffer.concat(chunks).toString(), failure, read: bytes }
}

describe('readBytes', () => {
  it('reads a plain file and counts its bytes', async () => {
    assert.deepEqual(await read(folder.write('plain', long)), {
      text: long,
      failure: undefined,
      read: long.length,
    })
  })

  it('decompresses gzip whatever the file name, and counts the compressed bytes', async () => {
    const packed = gzipSync(long)
    assert.deepEqual(await read(folder.write('packed.json', packed)), {
      text: long,
      failure: undefined,
      read: packed.length,
    })
  })

  it('decompresses concatenated gzip files', async () => {
    const { text } = await read(folder.write('two.gz', Buffer.concat([gzipSync('one\n'), gzipSync('two\n')])))
    assert.equal(text, 'one\ntwo\n')
  })

  it('skips a byte order mark, compressed or not', async () => {
    const marked = Buffer.concat([Buffer.of(0xef, 0xbb, 0xbf), Buffer.from('é')])
    assert.equal((await read(folder.write('mark', marked))).text, 'é')
    assert.equal((await read(folder.write('mark.gz', gzipSync(marked)))).text, 'é')
  })

  it('yields the readable part of a truncated file, then fails', async () => {
    const packed = gzipSync(long)
    for (const share of [0.3, 0.7, 0.99]) {
      const { text, failure } = await read(folder.write('cut.gz', packed.subarray(0, packed.length * share)))
      assert.ok(text.length > long.length * (share - 0.25), `${share}: ${text.length} of ${long.length}`)
      assert.ok(long.startsWith(text))
      assert.match(describeReadFailure(failure), /cut off/)
    }
  })

  it('yields the bytes before the damage, then fails', async () => {
    const packed = gzipSync(long)
    const half = Math.floor(packed.length / 2)
    packed.fill(0xff, half, half + 400)
    const { text, failure } = await read(folder.write('damaged.gz', packed))
    assert.ok(text.length > long.length / 4 && text.length < long.length)
    assert.match(describeReadFailure(failure), /damaged/)
  })

  it('yields nothing for an empty file, and fails for a missing one', async () => {
    assert.deepEqual(await read(folder.write('empty', '')), { text: '', failure: undefined, read: 0 })
    assert.match(describeReadFailure((await read('/no/such/file')).failure), /no such file/)
  })
})
