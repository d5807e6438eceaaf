import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { readSettings } from './configuration.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function withFile(text: string): string {
  const cwd = mkdtempSync(join(folder, 'cwd-'))
  writeFileSync(join(cwd, 'sallyport.yaml'), text)
  return cwd
}

describe('the settings file', () => {
  it('is read with dotted or nested names, and the environment takes precedence (SETTING-1)', () => {
    const cwd = withFile(`
smart.server.access-token-ttl-seconds: 120
smart.server.secret: 0123456789012345678901234567890123
smart:
  app:
    session-idle-seconds: 900
    scope: [launch, openid]
  server.bind: [127.0.0.1, 127.0.0.2]
`)
    const settings = readSettings({ SMART_SESSION_IDLE_SECONDS: '60' }, cwd)
    assert.equal(settings.accessTokenTtlSeconds, 120)
    assert.equal(settings.secret, '0123456789012345678901234567890123')
    assert.equal(settings.app.sessionIdleSeconds, 60)
    assert.equal(settings.app.scope, 'launch openid')
    assert.deepEqual(settings.bind, ['127.0.0.1', '127.0.0.2'])
  })

  it('accepts defaultNeedPatientBanner (SETTING-4)', () => {
    assert.equal(
      readSettings({}, withFile('defaultNeedPatientBanner: false')).defaultNeedPatientBanner,
      false,
    )
  })

  it('is the file that SMART_CONFIG names (SETTING-1)', () => {
    const cwd = withFile('smart.server.access-token-ttl-seconds: 1')
    writeFileSync(join(cwd, 'other.yaml'), 'smart.server.access-token-ttl-seconds: 2')
    assert.equal(readSettings({ SMART_CONFIG: 'other.yaml' }, cwd).accessTokenTtlSeconds, 2)
    assert.throws(
      () => readSettings({ SMART_CONFIG: 'missing.yaml' }, cwd),
      /Cannot read settings file missing.yaml: ENOENT/,
    )
  })

  it('may be empty or contain only comments', () => {
    for (const text of ['', '# nothing\n', '{}'])
      assert.equal(readSettings({}, withFile(text)).authPort, 9000)
  })

  const bad: readonly (readonly [text: string, message: RegExp])[] = [
    [
      'smart.server.isuer-url: http://localhost:1',
      /unknown setting smart.server.isuer-url; expected smart.server.issuer-url$/,
    ],
    ['colour: blue', /Cannot use sallyport.yaml: unknown setting colour; expected a name that/],
    [
      'smart: {server: {auth-port: high}}',
      /Cannot use smart.server.auth-port: expected a whole number from 1 to 65535, got "high"/,
    ],
    [
      'smart.server.auth-port: [1, 2]',
      /Cannot use smart.server.auth-port in sallyport.yaml: expected a whole number/,
    ],
    [
      'smart.server.auth-port:',
      /Cannot use smart.server.auth-port in sallyport.yaml: expected a whole number/,
    ],
    ['smart.server.bind: [[a]]', /Cannot use smart.server.bind in sallyport.yaml: expected IP addresses/],
    ['smart.server.auth-port: 1\nsmart: {server: {auth-port: 2}}', /smart.server.auth-port is set twice/],
    [
      'defaultNeedPatientBanner: true\nsmart.server.default-need-patient-banner: true',
      /default-need-patient-banner is set twice/,
    ],
    ['colour: blue\nsize: 7', /unknown setting colour; [^\n]*\n[^\n]*unknown setting size; [^\n]*$/],
    ['a: b: c', /^SettingsError: Cannot read settings file sallyport.yaml: [^\n]+$/],
    ['just words', /Cannot use sallyport.yaml: expected names with values/],
    ['[a, b]', /Cannot use sallyport.yaml: expected names with values/],
  ]
  for (const [text, message] of bad) {
    it(`stops at ${JSON.stringify(text)} (SETTING-3)`, () => {
      assert.throws(() => readSettings({}, withFile(text)), message)
    })
  }
})
