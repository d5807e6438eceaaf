import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { readSettings } from '../../config/index.ts'
import { readTrustedIssuers } from './files.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-issuers-'))
after(() => rmSync(folder, { recursive: true }))

const DEPLOYED = { SMART_ISSUER_URL: 'https://auth.test' }

function read(text: string, env: Readonly<Record<string, string>> = {}) {
  const file = join(folder, 'issuers.yaml')
  writeFileSync(file, text)
  return readTrustedIssuers(readSettings({ SMART_TRUSTED_ISSUERS_FILE: file, ...env }, folder))
}

describe('readTrustedIssuers', () => {
  it('is empty without a file', () => {
    assert.deepEqual(readTrustedIssuers(readSettings({}, folder)), [])
  })

  it('reads issuers, in YAML and in JSON', () => {
    const [one, two] = read(`
- issuer: https://idp.test/realms/a
  jwks-url: https://idp.test/realms/a/keys
  audience: api://fhir
  typ: [JWT, at+jwt]
  patient-claim: smart.patient
  fhir-user-claim: user
  scope-claim: scp
- { issuer: "https://b.test", jwks-url: "https://b.test/keys" }
`)
    assert.deepEqual(one, {
      issuer: 'https://idp.test/realms/a',
      jwksUrl: 'https://idp.test/realms/a/keys',
      audiences: ['api://fhir'],
      types: ['JWT', 'at+jwt'],
      patientClaim: 'smart.patient',
      fhirUserClaim: 'user',
      scopeClaim: 'scp',
    })
    assert.deepEqual([two?.issuer, two?.audiences], ['https://b.test', undefined])
    assert.equal(read('[{"issuer":"https://b.test","jwks-url":"https://b.test/keys"}]').length, 1)
  })

  const FAULTS: Readonly<Record<string, RegExp>> = {
    'issuer: x': /expected a list of issuers$/,
    '- a: [': /it is not YAML$/,
    '- issuer: https://a.test': /entry 1 needs issuer and jwks-url$/,
    '- { issuer: a, jwks-url: https://b.test }': /entry 1 has an invalid issuer$/,
    '- { issuer: https://a.test, jwks-url: https://b.test, typ: 1 }': /entry 1 has an invalid typ$/,
    '- { issuer: https://a.test, jwks-url: https://b.test, audiences: x }':
      /entry 1 has unknown key audiences; expected issuer/,
  }
  for (const [text, message] of Object.entries(FAULTS))
    it(`stops the start at ${text}`, () => assert.throws(() => read(text), message))

  it('requires https unless on loopback', () => {
    const text = '- { issuer: http://a.test, jwks-url: https://a.test/keys }'
    assert.throws(() => read(text, DEPLOYED), /entry 1 must be https unless on loopback/)
    assert.equal(read(text, { ...DEPLOYED, SMART_ALLOW_HTTP: 'true' }).length, 1)
  })

  it('names the file that cannot be read', () => {
    const settings = readSettings({ SMART_TRUSTED_ISSUERS_FILE: '/no/such/file' }, folder)
    assert.throws(() => readTrustedIssuers(settings), /SMART_TRUSTED_ISSUERS_FILE \/no\/such\/file: ENOENT$/)
  })
})
