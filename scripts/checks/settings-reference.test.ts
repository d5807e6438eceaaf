import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { settingRows } from '../../src/config/table.ts'
import { settingsReference } from './settings-reference.ts'

describe('settingsReference', () => {
  it('has a row of five cells for every setting', () => {
    for (const [, row] of settingRows) {
      const line = settingsReference()
        .split('\n')
        .find(text => text.startsWith(`| \`${row.name}\` | \`${row.env}\``))
      assert.ok(line, row.name)
      assert.equal(line.split(/(?<!\\)\|/).length, 7, row.name)
    }
  })

  it('matches docs/settings.md (SETTING-1)', () => {
    assert.equal(
      readFileSync(new URL('../../docs/settings.md', import.meta.url), 'utf8'),
      settingsReference(),
    )
  })
})
