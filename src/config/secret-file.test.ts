import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { readSettings } from './configuration.ts'
import { ensureSecret } from './secret-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const settingsIn = (name: string, more = {}) => readSettings({ SMART_DATA_DIR: name, ...more }, folder)

describe('ensureSecret', () => {
  it('creates a secret of 32 random bytes once, readable by this user only (SETTING-8)', () => {
    const made = ensureSecret(settingsIn('fresh'))
    assert.equal(Buffer.from(made, 'base64url').length, 32)
    assert.equal(ensureSecret(settingsIn('fresh')), made)
    assert.equal(settingsIn('fresh').secret, made)
    assert.deepEqual(readdirSync(join(folder, 'fresh')), ['secret'])
    assert.equal(statSync(join(folder, 'fresh', 'secret')).mode & 0o777, 0o600)
    assert.equal(statSync(join(folder, 'fresh')).mode & 0o777, 0o700)
  })

  it('returns the existing secret to a second start', () => {
    const [first, second] = [settingsIn('race'), settingsIn('race')]
    assert.equal(ensureSecret(first), ensureSecret(second))
  })

  it('prefers the setting and then creates no file', () => {
    const SMART_SECRET = 'a secret from the environment'
    assert.equal(ensureSecret(settingsIn('given', { SMART_SECRET })), SMART_SECRET)
    assert.throws(() => statSync(join(folder, 'given')), /ENOENT/)
  })

  it('creates none off loopback and ignores the one in the folder', () => {
    ensureSecret(settingsIn('moved'))
    assert.throws(
      () => ensureSecret(settingsIn('moved', { SMART_BIND: '0.0.0.0' })),
      /SMART_SECRET must be set off loopback/,
    )
  })

  it('names an unusable data folder', () => {
    writeFileSync(join(folder, 'a-file'), '')
    assert.throws(
      () => ensureSecret(settingsIn('a-file')),
      /Cannot use data folder .*a-file \(SMART_DATA_DIR\): it is not a folder/,
    )
    mkdirSync(join(folder, 'odd', 'secret'), { recursive: true })
    assert.throws(
      () => settingsIn('odd'),
      /Cannot use data folder .*odd \(SMART_DATA_DIR\): it is not a file/,
    )
    mkdirSync(join(folder, 'empty'))
    writeFileSync(join(folder, 'empty', 'secret'), '')
    assert.throws(() => ensureSecret(settingsIn('empty')), /the file is empty/)
  })

  it('writes the secret to no other file', () => {
    const made = ensureSecret(settingsIn('alone'))
    const texts = readdirSync(join(folder, 'alone')).map(name =>
      readFileSync(join(folder, 'alone', name), 'utf8'),
    )
    assert.deepEqual(texts, [`${made}\n`])
  })
})
