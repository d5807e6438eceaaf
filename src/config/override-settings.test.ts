import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { formatSettingsFile, overrideSettings, readSettings } from './index.ts'

const texts = { issuerUrl: 'http://localhost:1', dataDir: '/some/folder' }

describe('overridden settings', () => {
  it('replace both variables of a setting and keep the others', () => {
    const env = { SMART_SERVER_DATA_DIR: '/a', SMART_DATA_DIR: '/a', SMART_APP_URL: 'http://localhost:2' }
    assert.deepEqual(overrideSettings(env, texts), {
      SMART_ISSUER_URL: 'http://localhost:1',
      SMART_DATA_DIR: '/some/folder',
      SMART_APP_URL: 'http://localhost:2',
    })
  })

  it('have the same values in a settings file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-settings-'))
    try {
      writeFileSync(join(folder, 'sallyport.yaml'), formatSettingsFile(texts))
      assert.deepEqual(readSettings({}, folder), readSettings(overrideSettings({}, texts), folder))
      assert.equal(readSettings({}, folder).issuerUrl, 'http://localhost:1')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
