import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { listEffectiveSettings, readConfiguration } from '../configuration.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-providers-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function read(yaml: string, env: Record<string, string> = {}) {
  const cwd = mkdtempSync(join(folder, 'cwd-'))
  writeFileSync(join(cwd, 'sallyport.yaml'), yaml)
  return readConfiguration(env, cwd)
}

const HOSPITAL = `
smart.login.providers:
  - id: hospital
    name: Hospital account
    issuer: https://idp.ehr.example/realms/staff
    client-id: sallyport
    client-secret: "0123"
    scopes: openid profile
    fhir-user: { search: "Practitioner?identifier=urn:x|{employee_number}" }
    allow: { claim: groups, values: [clinicians, "nurses, all"] }
    admin: { claim: groups, values: [sallyport-admins] }
    acr-values: [urn:mfa]
    max-age: 28800
    provision: true
`

describe('smart.login.providers', () => {
  it('is a list in the settings file (SIGNIN-1)', () => {
    assert.deepEqual(read(HOSPITAL).settings.login.providers, [
      {
        kind: 'oidc',
        id: 'hospital',
        name: 'Hospital account',
        clientId: 'sallyport',
        issuer: 'https://idp.ehr.example/realms/staff',
        scopes: 'openid profile',
        clientSecret: '0123',
        clientSecretFile: undefined,
        clientKeyFile: undefined,
        usernameClaim: 'preferred_username',
        displayNameClaim: 'name',
        fhirUser: { kind: 'search', search: 'Practitioner?identifier=urn:x|{employee_number}' },
        allow: { claim: 'groups', values: ['clinicians', 'nurses, all'] },
        admin: { claim: 'groups', values: ['sallyport-admins'] },
        users: 'clinicians',
        acrValues: ['urn:mfa'],
        maxAge: 28_800,
        provision: true,
      },
    ])
  })

  it('may name a directory (SIGNIN-14)', () => {
    const [directory] = read(`
smart.login.providers:
  - { id: staff, kind: ldap, url: "ldaps://dc.ehr.example", base-dn: "dc=ehr,dc=example" }`).settings.login
      .providers
    assert.deepEqual(directory, {
      kind: 'ldap',
      id: 'staff',
      name: 'staff',
      url: 'ldaps://dc.ehr.example',
      baseDn: 'dc=ehr,dc=example',
      usernameClaim: 'uid',
      displayNameClaim: 'cn',
      userFilter: '(uid={username})',
      groupFilter: undefined,
      bindDn: undefined,
      bindPasswordFile: undefined,
      tlsCa: undefined,
      fhirUser: undefined,
      allow: undefined,
      admin: undefined,
      provision: false,
    })
  })

  it('is printed without secrets', () => {
    const shown = listEffectiveSettings(read(HOSPITAL)).filter(({ name }) => name.startsWith('smart.login.'))
    assert.equal(shown.find(({ name }) => name === 'smart.login.providers')?.value, 'hospital')
    assert.doesNotMatch(JSON.stringify(shown), /0123/)
  })

  it('names every mistake (SIGNIN-1)', () => {
    const fault = (more: string) => {
      try {
        const { problems } = read(`
smart.login.providers:
  - { id: a, issuer: "https://a.example", client-id: c${more} }`)
        return problems.join()
      } catch (error) {
        return String(error).replace(/^SettingsError: Cannot use smart.login.providers: provider a: /, '')
      }
    }
    assert.equal(fault(''), '')
    assert.match(fault(', clientid: x'), /unknown setting clientid; expected id, name/)
    assert.equal(
      fault(', fhir-user: { claim: x, template: "Practitioner/{x}" }'),
      'fhir-user: expected exactly one of claim, template and search',
    )
    assert.match(fault(', fhir-user: { template: "Group/{x}" }'), /fhir-user: expected/)
    assert.equal(fault(', fhir-user: { template: "Patient/{x}" }'), 'fhir-user must name a Practitioner')
    assert.equal(fault(', users: patients'), 'users: patients needs acr-values')
    const patients = ', users: patients, acr-values: [high]'
    assert.equal(fault(`${patients}, fhir-user: { search: "Patient?identifier=urn:x|{x}" }`), '')
    assert.equal(
      fault(`${patients}, fhir-user: { search: "Practitioner?identifier=urn:x|{x}" }`),
      'fhir-user must name a Patient',
    )
    assert.equal(
      fault(`${patients}, admin: { claim: groups, values: [a] }`),
      'patients cannot be administrators',
    )
    assert.equal(fault(', allow: { claim: groups }'), 'allow: expected a claim and a list of values')
    assert.equal(fault(', provision: true'), 'provision needs fhir-user')
    assert.match(fault(', client-secret: x, client-key-file: y'), /expected one of client-secret/)
    assert.match(fault(', scopes: profile'), /scopes: expected scopes with openid/)
    assert.match(fault(', client-secret-file: missing'), /sign-in provider a cannot read .*missing/)
    assert.match(
      fault(' }\n  - { id: a, issuer: "https://b.example", client-id: c'),
      /two sign-in providers have the id a/,
    )
    assert.match(
      fault(' }\n  - { id: b, issuer: "https://a.example", client-id: c'),
      /have the issuer https:\/\/a\.example/,
    )
    assert.throws(
      () => read('smart.login.providers: [{ id: B }]'),
      /id: expected at most 40[\s\S]*issuer is missing[\s\S]*client-id is missing/,
    )
    assert.throws(() => read('smart.login.providers: hospital'), /expected a list of sign-in providers/)
  })

  it('requires https unless the provider is on this computer', () => {
    const { problems } = read(
      'smart.login.providers: [{ id: a, issuer: "http://idp.example", client-id: c }]',
    )
    assert.deepEqual(problems, ['sign-in provider a must use https or ldaps, or set SMART_ALLOW_HTTP=true'])
    assert.deepEqual(
      read('smart.login.providers: [{ id: a, issuer: "http://localhost:1", client-id: c }]').problems,
      [],
    )
  })
})

describe('SMART_LOGIN_PROVIDERS', () => {
  const entry = { id: 'hospital', issuer: 'https://idp.ehr.example/', 'client-id': 'sallyport' }
  const secret = { ...entry, 'client-secret': 'hush hush' }
  const readList = (env: Record<string, string>) => read('', env).settings.login.providers
  const list = JSON.stringify([secret])

  it('has the list as JSON, or names a file with it, and keeps the issuer as written (SIGNIN-1)', () => {
    const [provider] = readList({ SMART_LOGIN_PROVIDERS: list })
    assert.equal(provider?.kind === 'oidc' && provider.issuer, 'https://idp.ehr.example/')
    const file = join(folder, 'providers.json')
    writeFileSync(file, list)
    assert.deepEqual(readList({ SMART_LOGIN_PROVIDERS_FILE: file }), [provider])
    assert.deepEqual(read(`smart.login.providers-file: ${file}`).settings.login.providers, [provider])
  })

  it('is not repeated in an error, because it may contain a secret', () => {
    assert.throws(
      () => readList({ SMART_LOGIN_PROVIDERS: `${list}]` }),
      error => !String(error).includes('hush') && /expected a list of sign-in providers/.test(String(error)),
    )
  })

  it('replaces the settings of a single provider, which are refused with its name', () => {
    assert.throws(
      () => readList({ SMART_LOGIN_ISSUER: 'https://a.example' }),
      /Cannot use SMART_LOGIN_ISSUER: set SMART_LOGIN_PROVIDERS instead/,
    )
    assert.throws(
      () => readList({ SMART_LOGIN_CLIENT_SECRET_FILE: '/secret' }),
      /Cannot use SMART_LOGIN_CLIENT_SECRET_FILE: set SMART_LOGIN_PROVIDERS_FILE instead/,
    )
    assert.throws(
      () => read('smart.cds.url: https://a.example'),
      /Cannot use smart.cds.url in sallyport.yaml: set smart.cds.services instead/,
    )
  })

  it('is needed without passwords', () => {
    const problems = (env: Record<string, string>) =>
      read('', { SMART_LOGIN_PASSWORDS: 'false', ...env }).problems
    assert.deepEqual(problems({}), ['SMART_LOGIN_PASSWORDS=false needs a sign-in provider'])
    assert.deepEqual(problems({ SMART_LOGIN_PROVIDERS: list }), [])
  })
})
