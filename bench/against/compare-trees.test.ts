import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { hasBench } from './compare-trees.ts'

describe('hasBench', () => {
  it('says which benches a tree has, so that a new one does not end the comparison', () => {
    const root = mkdtempSync(join(tmpdir(), 'sallyport-trees-'))
    try {
      mkdirSync(join(root, 'bench'))
      writeFileSync(join(root, 'bench/auth.ts'), '')
      assert.deepEqual(
        ['auth', 'export'].map(name => hasBench({ root }, name)),
        [true, false],
      )
    } finally {
      rmSync(root, { recursive: true })
    }
  })
})
