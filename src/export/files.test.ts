import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { isFailure } from '../core/index.ts'
import { ExportFiles } from './files.ts'

const SUMMARY = { transactionTime: '2026-11-13T00:00:00.000Z', request: 'http://fhir.test/$export' }

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-files-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function open(path: string, isCompressed = false): ExportFiles {
  const files = ExportFiles.open(path, isCompressed)
  return isFailure(files) ? assert.fail(files.text) : files
}

describe('ExportFiles', () => {
  it('gives no file its name before all are complete', () => {
    const folder = newFolder()
    const files = open(join(folder, 'out'))
    files.append('Patient', 'x'.repeat(300_000))
    files.append('Group', '{}')
    assert.deepEqual(readdirSync(join(folder, 'out')).sort(), ['.Group.ndjson.part', '.Patient.ndjson.part'])
    assert.equal(files.finish(SUMMARY), 2)
    assert.deepEqual(readdirSync(join(folder, 'out')).sort(), [
      'Group.ndjson',
      'Patient.ndjson',
      'manifest.json',
    ])
  })

  for (const isCompressed of [false, true])
    it(`goes back to a mark, ${isCompressed ? 'compressed' : 'plain'}`, () => {
      const folder = newFolder()
      const files = open(join(folder, 'out'), isCompressed)
      files.append('Patient', 'first')
      const mark = files.mark('Patient')
      for (const text of ['waiting', 'x'.repeat(300_000), 'waiting']) files.append('Patient', text)
      files.cut('Patient', mark)
      files.append('Patient', 'second')
      assert.equal(files.finish(SUMMARY), 2)
      const bytes = readFileSync(join(folder, `out/Patient.ndjson${isCompressed ? '.gz' : ''}`))
      assert.equal((isCompressed ? gunzipSync(bytes) : bytes).toString(), 'first\nsecond\n')
    })

  it('removes what it has created, folders included, and nothing else', () => {
    const folder = newFolder()
    const files = open(join(folder, 'a/b/c'))
    files.append('Patient', '{}')
    writeFileSync(join(folder, 'a/other'), '')
    files.discard()
    assert.deepEqual([readdirSync(folder), readdirSync(join(folder, 'a'))], [['a'], ['other']])
  })

  it('keeps an empty folder that was there, such as a mounted disk', () => {
    const folder = newFolder()
    const files = open(folder)
    files.append('Patient', '{}')
    files.discard()
    assert.deepEqual(readdirSync(folder), [])
  })

  it('overwrites no file that another program writes meanwhile', () => {
    const folder = newFolder()
    const files = open(folder)
    files.append('Patient', '{}')
    writeFileSync(join(folder, 'Patient.ndjson'), 'theirs')
    assert.throws(() => files.finish(SUMMARY), /Patient\.ndjson was created meanwhile/)
    files.discard()
    assert.deepEqual(readdirSync(folder), ['Patient.ndjson'])
    assert.equal(readFileSync(join(folder, 'Patient.ndjson'), 'utf8'), 'theirs')
  })

  it('lets only one of two exports write to a folder', () => {
    const folder = newFolder()
    const [files, others] = [open(folder), open(folder)]
    files.append('Patient', 'ours')
    assert.throws(() => others.append('Patient', 'theirs'), { code: 'EEXIST' })
    others.discard()
    files.finish(SUMMARY)
    assert.equal(readFileSync(join(folder, 'Patient.ndjson'), 'utf8'), 'ours\n')
  })

  it('has an empty folder with a manifest if there is nothing to export', () => {
    const folder = newFolder()
    const files = open(join(folder, 'out'))
    files.mark('Patient')
    assert.equal(files.finish(SUMMARY), 0)
    assert.deepEqual(readdirSync(join(folder, 'out')), ['manifest.json'])
  })

  it('leaves nothing behind when the system refuses to write', { skip: process.platform === 'win32' }, () => {
    const folder = newFolder()
    mkdirSync(join(folder, 'work'))
    const program = `
      import { ExportFiles } from ${JSON.stringify(new URL('files.ts', import.meta.url).href)}
      const files = ExportFiles.open('out', false)
      try {
        for (let count = 0; count < 1_000; count++) files.append('Patient', 'x'.repeat(10_000))
      } catch (error) {
        files.discard()
        console.log(error.code)
      }`
    // Files may have 1 MB.
    const { stdout, stderr } = spawnSync(
      'sh',
      ['-c', 'ulimit -f 1000; exec "$0" --input-type=module -e "$1"', process.execPath, program],
      { cwd: join(folder, 'work'), encoding: 'utf8' },
    )
    assert.equal(stdout, 'EFBIG\n', stderr)
    assert.equal(existsSync(join(folder, 'work/out')), false)
  })
})
