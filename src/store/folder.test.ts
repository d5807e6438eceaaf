import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { makeFolder } from './store.ts'

describe('makeFolder', () => {
  const root = mkdtempSync(join(tmpdir(), 'sallyport-folder-'))
  after(() => rmSync(root, { recursive: true }))

  it('creates missing folders for this user only and keeps existing ones', () => {
    const folder = join(root, 'a/b/c')
    makeFolder(folder)
    makeFolder(folder)
    assert.equal(statSync(folder).mode & 0o777, 0o700)
  })

  it('throws if the system refuses to create a folder', { skip: process.platform !== 'linux' }, () => {
    assert.throws(() => makeFolder('/proc/sallyport/data'), { code: 'ENOENT' })
  })
})
