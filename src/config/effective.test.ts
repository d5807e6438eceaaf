import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readConfiguration } from './configuration.ts'
import { listEffectiveSettings } from './effective.ts'
import { settingRows } from './table.ts'

const effective = (env: Record<string, string>) =>
  new Map(listEffectiveSettings(readConfiguration(env, '/nowhere')).map(setting => [setting.name, setting]))

describe('listEffectiveSettings', () => {
  it('has every setting once, with its variable', () => {
    const all = effective({})
    assert.equal(all.size, settingRows.length)
    assert.equal(new Set([...all.values()].map(setting => setting.env)).size, settingRows.length)
  })

  it('shows values as written in the file, and unset values as undefined', () => {
    const all = effective({ SMART_SEARCH_LETTER: 's' })
    assert.equal(all.get('smart.server.bind')?.value, '127.0.0.1,::1')
    assert.equal(all.get('smart.server.auth-port')?.value, '9000')
    assert.equal(all.get('smart.server.tls-cert')?.value, undefined)
    assert.deepEqual(all.get('smart.fhir.search-letter'), {
      name: 'smart.fhir.search-letter',
      env: 'SMART_SEARCH_LETTER',
      value: 's',
      source: 'environment',
    })
  })

  it('shows the changed value of each setting, so no row reads another setting', () => {
    const before = effective({})
    const samples: Record<string, string> = {
      SMART_ISSUER_URL: 'http://localhost:1',
      SMART_FHIR_BASE_URL: 'http://localhost:2',
      SMART_APP_URL: 'http://localhost:3',
      SMART_CLIENT_LAUNCH_URL: 'http://localhost:4',
      SMART_DEFAULT_CLIENT_ID: 'other',
      SMART_DEFAULT_NEED_PATIENT_BANNER: 'false',
      SMART_DATABASE_URL: 'postgres://localhost/x',
      SMART_DATA_DIR: '/elsewhere',
      SMART_SECRET: 'a secret of the environment',
      SMART_BIND: '127.0.0.9',
      SMART_ALLOWED_HOSTS: 'ehr.test',
      SMART_TRUST_PROXY: 'loopback',
      SMART_DRAIN_DELAY_SECONDS: '5',
      SMART_TLS_CERT: '/cert',
      SMART_TLS_KEY: '/key',
      SMART_ALLOW_HTTP: 'true',
      SMART_LAB: 'false',
      SMART_OPEN_METRICS: 'true',
      SMART_LOG_LEVEL: 'debug',
      SMART_OPEN_REGISTRATION: 'false',
      SMART_REGISTRATION_TOKEN: 'a token for registration',
      SMART_LOGIN_PASSWORDS: 'false',
      SMART_LOGIN_PROVIDERS: '[{"id":"a","issuer":"http://localhost:1","client-id":"c"}]',
      SMART_LOGIN_ISSUER: 'http://localhost:1',
      SMART_CDS_SERVICES: '[{"id":"a","url":"http://localhost:1","client-id":"c"}]',
      SMART_CDS_URL: 'http://localhost:1',
      SMART_LOGIN_ALLOW: 'groups=a',
      SMART_LOGIN_ADMIN: 'groups=a',
      SMART_LOGIN_PROVISION: 'true',
      SMART_APP_AUTH_METHOD: 'none',
      SMART_AUDIT: 'false',
      SMART_AUDIT_FAILURE: 'allow',
      SMART_AUDIT_FEED_URL: 'http://localhost:7',
      SMART_AUDIT_SYSLOG_URL: 'tls://localhost:7',
      SMART_APP_CLIENT_ID: 'other',
      SMART_APP_SCOPE: 'openid',
      SMART_APP_ISSUERS: 'http://localhost:5',
      SMART_APP_FRAME_ORIGINS: 'https://ehr.example',
      SMART_FHIR_VERSION_ACCESS: 'version',
      SMART_FHIR_UPSTREAM_URL: 'http://localhost:6',
      SMART_FHIR_UPSTREAM_ALIASES: 'http://localhost:7',
      SMART_FHIR_UPSTREAM_NARROWING: 'parameter',
      SMART_FHIR_UPSTREAM_PROFILE: 'hapi',
      SMART_FHIR_UPSTREAM_SEARCH_CACHE: 'allow',
      SMART_FHIR_UPSTREAM_OPERATIONS: '$meta',
      SMART_FHIR_UPSTREAM_SEARCH_PARAMETERS: 'mrn',
      SMART_FHIR_UPSTREAM_AUTH: 'basic',
      SMART_FHIR_UPSTREAM_TOKEN_URL: 'http://localhost:8/token',
      SMART_FHIR_SMART_CONFIGURATION_URL: 'http://localhost:9/smart',
      SMART_SEARCH_LETTER: 's',
      SMART_SCOPE_CONTEXTS: 'patient',
      SMART_POLICY_FILE: '/policy',
      SMART_FHIR_PROTECTED_TYPES: 'Questionnaire',
    }
    for (const [, row] of settingRows) {
      // A masked value looks the same before and after.
      if (row.name === 'smart.server.seed-clinician-password') continue
      const after = effective({ [row.env]: samples[row.env] ?? '7' })
      assert.notEqual(after.get(row.name)?.value, before.get(row.name)?.value, row.name)
    }
  })

  it('masks secrets and passwords', () => {
    const all = effective({
      SMART_SECRET: 'a secret of the environment',
      SMART_SEED_CLINICIAN_PASSWORD: 'hush hush',
      SMART_FHIR_UPSTREAM_TOKEN: 'hush',
      SMART_LOGIN_CLIENT_SECRET: 'hush',
      SMART_FHIR_UPSTREAM_PASSWORD: 'hush',
      SMART_FHIR_UPSTREAM_CLIENT_SECRET: 'hush',
      SMART_DATABASE_URL: 'postgres://me:hush@db.example/x?password=hush',
    })
    const text = JSON.stringify([...all.values()])
    assert.doesNotMatch(text, /hush|a secret of/)
    assert.equal(all.get('smart.server.secret')?.value, '********')
    assert.match(all.get('smart.server.database-url')?.value ?? '', /^postgres:\/\/me:\*+@db\.example\/x/)
  })
})
