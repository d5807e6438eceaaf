import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { type Environment, readConfiguration } from './configuration.ts'
import { findSecurityWarnings } from './security-warnings.ts'

const folder = '/nowhere'
const problems = (env: Environment) => readConfiguration(env, folder).problems

describe('start problems and warnings', () => {
  const deployed = {
    SMART_ISSUER_URL: 'https://auth.ehr.example',
    SMART_FHIR_BASE_URL: 'https://fhir.ehr.example/fhir',
    SMART_APP_URL: 'https://app.ehr.example',
    SMART_CLIENT_LAUNCH_URL: 'https://app.ehr.example/launch',
    SMART_SECRET: 'thirty-two characters of a secret',
  }

  it('accepts the defaults and a complete deployment', () => {
    assert.deepEqual(problems({}), [])
    assert.deepEqual(problems(deployed), [])
  })

  for (const missing of Object.keys(deployed)) {
    it(`refuses to start off loopback without ${missing} (SETTING-7)`, () => {
      const found = problems({ ...deployed, [missing]: undefined })
      assert.ok(found.includes(`${missing} must be set off loopback`), found.join('\n'))
    })
  }

  it('refuses colours that are hard to read, and a logo that cannot be shown', () => {
    assert.match(
      problems({ SMART_BRAND_COLOUR: '#ffd700' }).join(),
      /contrast of 1\.\d\d:1.*has the same hue/,
    )
    assert.match(
      problems({ SMART_BRAND_DARK_COLOUR: '#3942b8' }).join(),
      /of the dark theme.*,SMART_BRAND_DARK_COLOUR needs SMART_BRAND_COLOUR$/,
    )
    assert.match(
      problems({ SMART_BRAND_LOGO: '/none.svg' }).join(),
      /^SMART_BRAND_LOGO cannot use \/none.svg/,
    )
    assert.deepEqual(problems({ SMART_BRAND_COLOUR: '#006747', SMART_BRAND_DARK_COLOUR: '#7fd1b0' }), [])
  })

  it('refuses an order of sign-in methods that names an unknown one', () => {
    assert.deepEqual(problems({ SMART_LOGIN_ORDER: 'hospital,password' }), [
      'SMART_LOGIN_ORDER names hospital, which is not a sign-in method in use (password)',
    ])
    assert.deepEqual(problems({ SMART_LOGIN_ORDER: 'password' }), [])
  })

  it('refuses limits of bodies that are too large for the embedded FHIR server (LIMIT-8)', () => {
    const large = {
      SMART_FHIR_BODY_LIMIT_MB: '12',
      SMART_FHIR_BINARY_LIMIT_MB: '100',
      SMART_FHIR_BUNDLE_ENTRIES: '5000',
    }
    assert.deepEqual(problems(large), [
      'SMART_FHIR_BODY_LIMIT_MB: the embedded FHIR server accepts at most 8',
      'SMART_FHIR_BINARY_LIMIT_MB: the embedded FHIR server accepts at most 8',
      'SMART_FHIR_BUNDLE_ENTRIES: the embedded FHIR server accepts at most 1000',
    ])
    assert.deepEqual(problems({ ...large, SMART_FHIR_UPSTREAM_URL: 'http://localhost:9999/fhir' }), [])
    assert.throws(() => problems({ SMART_FHIR_BODY_LIMIT_MB: '17' }), /SMART_FHIR_BODY_LIMIT_MB/)
  })

  it('refuses an incomplete CDS service, and one that would get tokens over http (CDS-8)', () => {
    const listed = { id: 'bp', url: 'https://cds.example', 'client-id': 'advice' }
    const problemsOf = (...services: unknown[]) => problems({ SMART_CDS_SERVICES: JSON.stringify(services) })
    assert.deepEqual(problemsOf({ ...listed, url: 'http://localhost:5000' }), [])
    assert.deepEqual(problemsOf({ ...listed, url: 'http://cds.example' }), [
      'CDS service bp must use https, or set SMART_ALLOW_HTTP=true',
    ])
    for (const wrong of [{ ...listed, id: 'a/b' }, { ...listed, url: 'x' }, { ...listed, secret: 'y' }, 'bp'])
      assert.throws(() => problemsOf(wrong), /^SettingsError: Cannot use SMART_CDS_SERVICES/)
    assert.deepEqual(problemsOf(listed), [])
  })

  it('is off loopback if one bind address is (SETTING-6)', () => {
    assert.equal(
      problems({ SMART_BIND: '127.0.0.1,192.0.2.1' })[0],
      'SMART_ISSUER_URL must be set off loopback',
    )
  })

  it('refuses http off loopback unless it is allowed (SETTING-7)', () => {
    const unsafe = { ...deployed, SMART_APP_URL: 'http://app.ehr.example' }
    assert.deepEqual(problems(unsafe), [
      'SMART_APP_URL must be https off loopback, or set SMART_ALLOW_HTTP=true',
    ])
    assert.deepEqual(problems({ ...unsafe, SMART_ALLOW_HTTP: 'true' }), [])
  })

  it('refuses to send audit records in clear text, and with half of a client certificate', () => {
    const feed = { SMART_AUDIT_FEED_URL: 'http://arr.ehr.example/fhir' }
    assert.deepEqual(problems(feed), ['SMART_AUDIT_FEED_URL must use https, or set SMART_ALLOW_HTTP=true'])
    assert.deepEqual(problems({ ...feed, SMART_ALLOW_HTTP: 'true' }), [])
    assert.deepEqual(problems({ SMART_AUDIT_FEED_URL: 'http://localhost:7/fhir' }), [])
    assert.deepEqual(problems({ SMART_AUDIT_TLS_CERT: 'c' }), [
      'SMART_AUDIT_TLS_CERT needs SMART_AUDIT_TLS_KEY',
    ])
    assert.deepEqual(problems({ SMART_AUDIT_TLS_KEY: 'k' }), [
      'SMART_AUDIT_TLS_KEY needs SMART_AUDIT_TLS_CERT',
    ])
  })

  it('refuses frames of an app whose cookies no browser would accept in them', () => {
    const framed = { SMART_APP_FRAME_ORIGINS: 'https://ehr.example' }
    assert.deepEqual(problems(framed), [])
    assert.deepEqual(problems({ ...deployed, ...framed }), [])
    const unsafe = { SMART_APP_URL: 'http://app.ehr.example', SMART_ALLOW_HTTP: 'true' }
    assert.deepEqual(problems({ ...deployed, ...framed, ...unsafe }), [
      'SMART_APP_URL must be https with SMART_APP_FRAME_ORIGINS',
    ])
  })

  it('accepts the environment of compose.yaml', () => {
    const file = new URL('../../compose.yaml', import.meta.url)
    const { services } = parse(readFileSync(file, 'utf8'), { merge: true })
    const ours = Object.entries<{ command?: readonly string[]; environment: Environment }>(services).filter(
      ([, { command }]) => command?.[0] === 'start',
    )
    assert.deepEqual(
      ours.map(([name]) => name),
      ['auth', 'fhir', 'app'],
    )
    for (const [name, { environment }] of ours) {
      const filled = Object.entries(environment).map(([variable, text]) => [
        variable,
        text?.replaceAll(/\$\{[^}]*\}/g, 'q8VtZ2mXc4Ls7Wd1Yk9RfHbJpN3gAu5E'),
      ])
      const { problems: found, warnings } = readConfiguration(Object.fromEntries(filled), folder)
      assert.deepEqual([...found, ...warnings], [], name)
    }
  })

  it('warns off loopback about settings that make a deployment less secure', () => {
    const find = (env: Environment) =>
      findSecurityWarnings(readConfiguration({ ...deployed, ...env }, folder).settings).map(
        ({ code }) => code,
      )
    const secure = {
      SMART_SECRET: 'q8VtZ2mXc4Ls7Wd1Yk9RfHbJpN3gAu5E',
      SMART_LOGIN_SECOND_FACTOR: 'administrators',
      SMART_POLICY_FILE: '/etc/policy.yaml',
      SMART_OFFLINE_ACCESS_MAX_DAYS: '365',
      SMART_AUDIT_SYSLOG_URL: 'tls://siem.example:6514',
    }
    assert.deepEqual(find(secure), [])
    const limits = {
      SMART_ACCESS_TOKEN_TTL_SECONDS: '3600',
      SMART_AUDIT_DAYS: '365',
      SMART_LOGIN_IDLE_SECONDS: '28800',
      SMART_KEY_MAX_AGE_DAYS: '3650',
    }
    assert.deepEqual(find({ ...secure, ...limits }), [])
    assert.deepEqual(find({ ...secure, SMART_AUDIT: 'false', SMART_AUDIT_DAYS: '30' }), ['audit-off'])
    const provide = (more: object) => ({
      SMART_LOGIN_PROVIDERS: JSON.stringify([
        { id: 'idp', issuer: 'https://idp.example', 'client-id': 'x', ...more },
      ]),
    })
    const rows: readonly (readonly [Environment, string])[] = [
      [{ SMART_AUDIT: 'false' }, 'audit-off'],
      [{ SMART_AUDIT_FAILURE: 'allow' }, 'audit-failure'],
      [{ SMART_AUDIT_SYSLOG_URL: undefined }, 'audit-feed'],
      [{ SMART_LOGIN_SECOND_FACTOR: 'none' }, 'second-factor'],
      [provide({ admin: { claim: 'groups', values: ['admins'] } }), 'admin-provider'],
      [{ ...provide({}), SMART_OFFLINE_ACCESS_MAX_DAYS: '0' }, 'offline-access'],
      [{ SMART_OFFLINE_ACCESS_MAX_DAYS: '0' }, 'offline-access-local'],
      [{ SMART_ACCESS_TOKEN_TTL_SECONDS: '3601' }, 'access-token'],
      [{ SMART_AUDIT_DAYS: '364' }, 'audit-days'],
      [{ SMART_LOGIN_IDLE_SECONDS: '0' }, 'login-idle'],
      [{ SMART_OPEN_REGISTRATION: 'true' }, 'registration'],
      [{ SMART_KEY_MAX_AGE_DAYS: '0' }, 'key-age'],
      [{ SMART_POLICY_FILE: undefined }, 'policy'],
      [{ SMART_DATABASE_URL: 'postgres://u:p@db.example/s' }, 'database'],
      [{ SMART_DATABASE_URL: 'postgres://u:p@db.example/s?sslmode=require' }, 'database'],
      [{ SMART_ALLOW_HTTP: 'true' }, 'http'],
      [{ SMART_OPEN_METRICS: 'true' }, 'metrics'],
      [{ SMART_LOGIN_FAILURE_LIMIT: '1000' }, 'failure-limit'],
      [{ SMART_SECRET: 'abababababababababababababababababab' }, 'secret'],
    ]
    for (const [env, code] of rows) assert.deepEqual(find({ ...secure, ...env }), [code])
    for (const url of ['postgres://u:p@localhost/s', 'postgres://u:p@db.example/s?sslmode=verify-full'])
      assert.deepEqual(find({ ...secure, SMART_DATABASE_URL: url }), [])
    assert.deepEqual(findSecurityWarnings(readConfiguration({ SMART_AUDIT: 'false' }, folder).settings), [])
  })

  it('warns about plain http behind https URLs without a configured proxy', () => {
    const warnings = (env: Readonly<Record<string, string>>) =>
      readConfiguration({ ...deployed, ...env }, folder).startWarnings
    assert.match(warnings({}).join(), /^Serving plain http on 0\.0\.0\.0: set SMART_TLS_CERT/)
    assert.deepEqual(warnings({ SMART_TRUST_PROXY: 'loopback' }), [])
    assert.deepEqual(warnings({ SMART_TLS_CERT: 'c', SMART_TLS_KEY: 'k' }), [])
    assert.deepEqual(readConfiguration({}, folder).startWarnings, [])
  })

  const lab = {
    ...deployed,
    SMART_LAB: 'true',
    SMART_LAB_EXPOSES_ALL_PATIENTS: 'true',
    SMART_TRUST_PROXY: 'loopback',
  }

  it('turns the lab on by default on loopback only, and warns about it off loopback (LAB-1, SETTING-9)', () => {
    const read = (env: Environment) => readConfiguration(env, folder)
    const isOn = (env: Environment) => read(env).settings.lab
    assert.deepEqual([isOn({}), isOn({ SMART_LAB: 'false' })], [true, false])
    assert.deepEqual([isOn(deployed), isOn({ SMART_BIND: '0.0.0.0' })], [false, false])
    assert.deepEqual([isOn(lab), problems(lab)], [true, []])
    assert.match(read(lab).startWarnings.join('\n'), /^SMART_LAB=true: administrators can open every record /)
  })

  it('refuses the lab off loopback without a setting that names its risk, and over plain http in any case (SETTING-9)', () => {
    assert.deepEqual(problems({ ...lab, SMART_LAB_EXPOSES_ALL_PATIENTS: undefined }), [
      'SMART_LAB=true off loopback needs SMART_LAB_EXPOSES_ALL_PATIENTS=true: the lab opens every record',
    ])
    assert.deepEqual(problems({ ...lab, SMART_TRUST_PROXY: undefined }), [
      'SMART_LAB=true off loopback needs https: set SMART_TLS_CERT and SMART_TLS_KEY, or SMART_TRUST_PROXY',
    ])
    assert.deepEqual(
      problems({ ...lab, SMART_TRUST_PROXY: undefined, SMART_TLS_CERT: 'c', SMART_TLS_KEY: 'k' }),
      [],
    )
    for (const name of [
      'SMART_ISSUER_URL',
      'SMART_FHIR_BASE_URL',
      'SMART_APP_URL',
      'SMART_CLIENT_LAUNCH_URL',
    ] as const)
      for (const host of ['auth.ehr.example', 'localhost:9000'])
        assert.deepEqual(problems({ ...lab, SMART_ALLOW_HTTP: 'true', [name]: `http://${host}` }), [
          `${name} must be https off loopback with SMART_LAB=true`,
        ])
  })

  it('refuses a gateway in front of itself', () => {
    const upstream = (url: string, env = {}) => problems({ ...env, SMART_FHIR_UPSTREAM_URL: url })
    const own = [
      'SMART_FHIR_UPSTREAM_URL names the gateway itself: expected the URL of the FHIR server behind it',
    ]
    for (const url of ['http://localhost:8080/fhir', 'http://127.0.0.1:8080/fhir/', 'http://[::1]:8080/r4'])
      assert.deepEqual(upstream(url), own, url)
    assert.deepEqual(upstream('http://localhost:8090/fhir'), [])
    assert.deepEqual(upstream('https://fhir.ehr.example/fhir/', deployed), own)
    assert.deepEqual(upstream('https://fhir.ehr.example/r4', deployed), [])
    assert.deepEqual(upstream('http://localhost:8443/fhir', { ...deployed, SMART_FHIR_PORT: '8443' }), own)
  })

  it('refuses an unencrypted upstream on the network, but not on loopback', () => {
    const upstream = (url: string) => problems({ ...deployed, SMART_FHIR_UPSTREAM_URL: url })
    assert.equal(upstream('http://hapi.ehr.example/fhir').length, 1)
    assert.deepEqual(upstream('http://localhost:8090/fhir'), [])
    assert.deepEqual(upstream('https://hapi.ehr.example/fhir'), [])
  })

  it('refuses to send a secret or a token unencrypted over the network', () => {
    const client = {
      SMART_FHIR_UPSTREAM_URL: 'https://hapi.ehr.example/fhir',
      SMART_FHIR_UPSTREAM_AUTH: 'client-credentials',
      SMART_FHIR_UPSTREAM_CLIENT_ID: 'gateway',
      SMART_FHIR_UPSTREAM_CLIENT_SECRET: 'secret',
    }
    const tokenUrl = (url: string) => problems({ ...deployed, ...client, SMART_FHIR_UPSTREAM_TOKEN_URL: url })
    assert.match(
      tokenUrl('http://hapi.ehr.example/token').join(),
      /^SMART_FHIR_UPSTREAM_TOKEN_URL must be https/,
    )
    assert.deepEqual(tokenUrl('https://hapi.ehr.example/token'), [])
    const issuers = (urls: string) => problems({ ...deployed, SMART_APP_ISSUERS: urls })
    assert.match(
      issuers('https://a.example/r4,http://b.example/r4').join(),
      /^SMART_APP_ISSUERS must be https/,
    )
    assert.deepEqual(issuers('https://a.example/r4,http://localhost:8080/fhir'), [])
  })

  it('requires certificate and key together, and https URLs with them', () => {
    assert.deepEqual(problems({ ...deployed, SMART_TLS_CERT: 'c' }), ['SMART_TLS_CERT needs SMART_TLS_KEY'])
    assert.deepEqual(problems({ ...deployed, SMART_TLS_KEY: 'k' }), ['SMART_TLS_KEY needs SMART_TLS_CERT'])
    assert.deepEqual(problems({ ...deployed, SMART_TLS_CERT: 'c', SMART_TLS_KEY: 'k' }), [])
    assert.equal(problems({ SMART_TLS_CERT: 'c', SMART_TLS_KEY: 'k' }).length, 3)
  })
})
