import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { type Environment, listEffectiveSettings, readConfiguration, readSettings } from './configuration.ts'
import { getValue } from './derive.ts'
import { formatSettingsFile, overrideSettings } from './index.ts'
import { listFormerVariables, listVariables, type SettingRow } from './setting-row.ts'
import { settingRows } from './table.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function textFor(row: SettingRow<unknown>): string {
  const texts = [
    row.initial ?? '',
    '7',
    '12',
    '1',
    'http://localhost:7',
    'true',
    '127.0.0.1',
    'a text of some length',
    'postgres://a/b',
    '$meta',
    'mrn',
    'Questionnaire',
    '[]',
    'groups=a',
    'tls://localhost:7',
    '#3942b8',
  ]
  return texts.find(text => row.type.parse(text) !== undefined && text !== '') ?? ''
}

const read = (env: Environment) => readSettings(env, folder)

describe('readSettings', () => {
  it('has the documented defaults (SERVICE-3)', () => {
    const { seedClinicianPassword, ...settings } = read({})
    assert.equal(seedClinicianPassword, 'sallyport')
    assert.deepEqual(settings, {
      issuerUrl: 'http://localhost:9000',
      fhirBaseUrl: 'http://localhost:8080/fhir',
      appUrl: 'http://localhost:8081',
      smartClientLaunchUrl: 'http://localhost:8081/launch',
      defaultClientId: 'sallyport-app',
      patientApps: ['sallyport-app'],
      defaultNeedPatientBanner: true,
      accessTokenTtlSeconds: 300,
      databaseUrl: `sqlite:${join(folder, 'data', 'sallyport.db')}`,
      database: { poolSize: 10, connectTimeoutSeconds: 5, statementTimeoutSeconds: 15 },
      dataDir: join(folder, 'data'),
      secret: undefined,
      workers: 1,
      authPort: 9000,
      fhirPort: 8080,
      appPort: 8081,
      bind: ['127.0.0.1', '::1'],
      allowedHosts: [],
      trustProxy: undefined,
      tlsCert: undefined,
      tlsKey: undefined,
      allowHttp: false,
      drainDelaySeconds: 0,
      loginFailureLimit: 10,
      loginFailureWindowSeconds: 300,
      loginFailureLimitPerAddress: 1000,
      brand: {
        name: 'Sallyport',
        support: undefined,
        patientContact: undefined,
        logo: undefined,
        colour: undefined,
        darkColour: undefined,
      },
      agents: {
        enabled: true,
        accessMinutes: 15,
        callsPerMinute: 120,
        proposalDays: 7,
        offlineAccess: false,
        scopeContexts: ['patient'],
        clientHosts: [],
      },
      cds: { services: [] },
      minPasswordLength: 8,
      activationLinkHours: 72,
      login: { passwords: true, secondFactor: 'none', providers: [], order: [] },
      loginIdleSeconds: 0,
      lab: true,
      developerTools: true,
      labExposesAllPatients: false,
      metrics: { isOpen: false, port: undefined, bind: ['127.0.0.1', '::1'], access: 'loopback' },
      logLevel: 'warn',
      telemetry: undefined,
      privateJwksHosts: [],
      openRegistration: true,
      registrationToken: undefined,
      offlineAccessMaxDays: 0,
      keyMaxAgeDays: 90,
      audit: {
        kept: true,
        failure: 'refuse',
        days: 1095,
        activityClinicians: undefined,
        patientSearch: true,
      },
      auditFeeds: {
        fhirUrl: undefined,
        token: undefined,
        syslogUrl: undefined,
        tlsCa: undefined,
        tlsCert: undefined,
        tlsKey: undefined,
      },
      app: {
        clientId: 'sallyport-app',
        authMethod: 'private_key_jwt',
        scope:
          'launch openid fhirUser online_access patient/Patient.rs patient/Condition.rs patient/MedicationRequest.rs patient/Medication.rs patient/Observation.rs patient/AllergyIntolerance.rs patient/Encounter.rs',
        issuers: ['http://localhost:8080/fhir'],
        sessionMaxSeconds: 28_800,
        sessionIdleSeconds: 1800,
        frameOrigins: [],
        timeoutSeconds: 10,
      },
      fhir: {
        upstreamUrl: undefined,
        upstream: {
          aliases: [],
          export: 'search',
          operations: [],
          searchParameters: [],
          narrowing: 'auto',
          profile: 'auto',
          searchCache: 'bypass',
          timeoutSeconds: 10,
          responseLimitMegabytes: 16,
          connections: 64,
          auth: 'none',
          token: undefined,
          username: undefined,
          password: undefined,
          tokenUrl: undefined,
          clientId: undefined,
          clientSecret: undefined,
          scope: undefined,
          tlsCert: undefined,
          tlsKey: undefined,
          tlsCa: undefined,
        },
        trustedIssuersFile: undefined,
        smartConfigurationUrl: undefined,
        searchPermission: 'r',
        versionAccess: 'current',
        protectedTypes: [],
        bodyLimitMegabytes: undefined,
        binaryLimitMegabytes: undefined,
        bundleEntries: 1000,
        exportHours: 24,
        exportFileResources: 100_000,
        relationContexts: ['system'],
        scopeContexts: ['patient', 'user', 'system'],
        policyFile: undefined,
        samplePatients: 60,
      },
      onLoopback: true,
    })
  })

  it('has a valid default for every setting that always has one', () => {
    for (const [, row] of settingRows) {
      if (row.initial !== undefined) assert.notEqual(row.type.parse(row.initial), undefined, row.name)
      else assert.ok(row.otherwise, row.name)
    }
  })

  it('refuses the variables that 0.3 derived from the names, and names the right one (SETTING-2)', () => {
    const former = settingRows.flatMap(([, row]) =>
      listFormerVariables(row).map(variable => [row, variable] as const),
    )
    assert.ok(former.length > 50)
    for (const [row, variable] of former) {
      const right = variable.endsWith('_FILE') && !row.name.endsWith('-file') ? `${row.env}_FILE` : row.env
      assert.throws(() => read({ [variable]: textFor(row) }), {
        message: `Cannot use ${variable}: set ${right} instead`,
      })
      assert.doesNotThrow(() => read({ [variable]: '' }))
    }
  })

  it('has no variable that two settings share', () => {
    const variables = settingRows.flatMap(([, row]) => [...listVariables(row), ...listFormerVariables(row)])
    assert.equal(new Set(variables).size, variables.length)
  })

  it('derives ports, issuers and launch data from other settings (SETTING-6)', () => {
    const settings = read({
      SMART_ISSUER_URL: 'http://localhost:9100/',
      SMART_FHIR_BASE_URL: 'http://127.0.0.1:8180/r4/',
      SMART_APP_URL: 'http://[::1]:8181',
      SMART_APP_PORT: '8182',
    })
    assert.equal(settings.issuerUrl, 'http://localhost:9100')
    assert.equal(settings.fhirBaseUrl, 'http://127.0.0.1:8180/r4')
    assert.deepEqual([settings.authPort, settings.fhirPort, settings.appPort], [9100, 8180, 8182])
    assert.deepEqual(settings.app.issuers, ['http://127.0.0.1:8180/r4'])
    assert.equal(settings.onLoopback, true)
  })

  it('listens on the default ports if the URLs have none', () => {
    const settings = read({
      SMART_ISSUER_URL: 'https://auth.ehr.example',
      SMART_FHIR_BASE_URL: 'https://fhir.ehr.example/fhir',
      SMART_APP_URL: 'https://app.ehr.example',
    })
    assert.deepEqual([settings.authPort, settings.fhirPort, settings.appPort], [9000, 8080, 8081])
    assert.deepEqual(settings.bind, ['0.0.0.0'])
    assert.equal(settings.onLoopback, false)
  })

  it('has a worker for each core, at most 8, off loopback', () => {
    const { workers } = read({ SMART_ISSUER_URL: 'https://auth.ehr.example' })
    assert.equal(workers, Math.min(availableParallelism(), 8))
    assert.equal(read({ SMART_WORKERS: '3' }).workers, 3)
  })

  it('makes every path absolute', () => {
    const settings = read({
      SMART_DATA_DIR: 'elsewhere',
      SMART_DATABASE_URL: 'sqlite:my.db',
      SMART_TLS_CERT: 'cert.pem',
      SMART_POLICY_FILE: '/etc/policy.yaml',
    })
    assert.equal(settings.dataDir, join(folder, 'elsewhere'))
    assert.equal(settings.databaseUrl, `sqlite:${join(folder, 'my.db')}`)
    assert.equal(settings.tlsCert, join(folder, 'cert.pem'))
    assert.equal(settings.fhir.policyFile, '/etc/policy.yaml')
  })

  it('treats an empty variable as unset', () => {
    assert.equal(read({ SMART_ACCESS_TOKEN_TTL_SECONDS: '', SMART_CONFIG: '' }).accessTokenTtlSeconds, 300)
  })

  it('ends an idle login after 30 minutes off loopback by default', () => {
    const off = { SMART_BIND: '0.0.0.0' }
    assert.equal(read(off).loginIdleSeconds, 1800)
    assert.equal(read({ ...off, SMART_LOGIN_IDLE_SECONDS: '0' }).loginIdleSeconds, 0)
    assert.equal(read({ SMART_LOGIN_IDLE_SECONDS: '600' }).loginIdleSeconds, 600)
  })

  it('generates a random password for the test clinician off loopback', () => {
    const passwords = [1, 2].map(() => read({ SMART_BIND: '0.0.0.0' }).seedClinicianPassword)
    assert.match(passwords[0] ?? '', /^[\w-]{16}$/)
    assert.notEqual(passwords[0], passwords[1])
    assert.equal(
      read({ SMART_BIND: '0.0.0.0', SMART_SEED_CLINICIAN_PASSWORD: 'mine' }).seedClinicianPassword,
      'mine',
    )
  })

  const bad: readonly (readonly [variable: string, value: string, message: RegExp])[] = [
    ['SMART_ISSUER_URL', 'localhost:9000', /expected an http or https URL without path/],
    ['SMART_ISSUER_URL', 'http://localhost:9000/auth', /without path, query and fragment, got "http/],
    [
      'SMART_FHIR_UPSTREAM_URL',
      'https://me:pa:s@s@hapi.example/',
      /fragment, got "https:\/\/\*{8}@hapi.example\/"$/,
    ],
    ['SMART_FHIR_BASE_URL', 'http://localhost/fhir?x=1', /without query and fragment/],
    ['SMART_FHIR_BASE_URL', 'http://localhost/fhir#', /without query and fragment/],
    ['SMART_CLIENT_LAUNCH_URL', 'ftp://localhost/launch', /an http or https URL, got/],
    ['SMART_CLIENT_LAUNCH_URL', 'javascript:alert(1)', /expected an http or https URL/],
    ['SMART_CLIENT_LAUNCH_URL', 'https://app.example/#/コ', /expected an http or https URL/],
    ['SMART_DEFAULT_NEED_PATIENT_BANNER', 'yes', /expected true or false, got "yes"/],
    ['SMART_ACCESS_TOKEN_TTL_SECONDS', '0', /a whole number from 1 to 86400, got "0"/],
    ['SMART_ACCESS_TOKEN_TTL_SECONDS', '5m', /a whole number/],
    ['SMART_ACCESS_TOKEN_TTL_SECONDS', '-5', /a whole number/],
    ['SMART_AUTH_PORT', '65536', /from 1 to 65535/],
    ['SMART_BIND', 'ehr.example', /expected IP addresses, separated by commas/],
    ['SMART_BIND', '127.0.0.1,', /expected IP addresses/],
    ['SMART_TRUST_PROXY', '10.0.0.0/33', /expected IP addresses, networks/],
    ['SMART_TRUST_PROXY', '0.0.0.0/0', /expected IP addresses, networks/],
    ['SMART_TRUST_PROXY', '::/0', /expected IP addresses, networks/],
    ['SMART_TRUST_PROXY', 'true', /expected IP addresses, networks/],
    ['SMART_APP_SCOPE', 'launch patient/Patient.sr', /expected SMART scopes/],
    ['SMART_APP_SCOPE', ' ', /expected SMART scopes/],
    ['SMART_APP_ISSUERS', 'http://a/fhir,ftp://b', /URLs without query and fragment, separated by commas/],
    ['SMART_APP_CLIENT_ID', 'two words', /expected a client id/],
    ['SMART_SEARCH_LETTER', 'rs', /expected r or s, got "rs"/],
    ['SMART_SCOPE_CONTEXTS', 'patient,everyone', /expected patient, user or system/],
    ['SMART_SAMPLE_PATIENTS', 'many', /a whole number from 0/],
    ['SMART_FHIR_UPSTREAM_SEARCH_PARAMETERS', '_filter', /expected search parameters such as mrn/],
    ['SMART_FHIR_UPSTREAM_OPERATIONS', 'meta', /expected operations such as \$meta/],
    ['SMART_FHIR_UPSTREAM_OPERATIONS', 'Patient/1/$meta', /expected operations/],
    ['SMART_LOG_LEVEL', 'loud', /expected trace or debug or info/],
  ]
  for (const [variable, value, message] of bad) {
    it(`refuses ${variable}=${value} (SETTING-3)`, () => {
      assert.throws(() => read({ [variable]: value }), message)
      assert.throws(
        () => read({ [variable]: value }),
        new RegExp(`^SettingsError: Cannot use ${variable}: expected`),
      )
    })
  }

  it('never repeats a secret that it refuses (SETTING-5)', () => {
    for (const [variable, value] of [
      ['SMART_SECRET', 'short'],
      ['SMART_SEED_CLINICIAN_PASSWORD', 'x'.repeat(73)],
      ['SMART_DATABASE_URL', 'mysql://me:hush@host/db'],
    ] as const) {
      assert.throws(
        () => read({ [variable]: value }),
        (error: Error) =>
          error.message.startsWith(`Cannot use ${variable}: expected`) && !error.message.includes(value),
      )
    }
  })

  it('launches the demo app at the app URL by default (SETTING-6)', () => {
    const { smartClientLaunchUrl } = read({ SMART_APP_URL: 'http://localhost:8182' })
    assert.equal(smartClientLaunchUrl, 'http://localhost:8182/launch')
  })

  it('keeps the query of a launch URL', () => {
    const launch = 'https://app.example/launch?tenant=7'
    assert.equal(read({ SMART_CLIENT_LAUNCH_URL: launch }).smartClientLaunchUrl, launch)
  })

  it('reads lists', () => {
    const settings = read({
      SMART_BIND: '127.0.0.1, 10.0.0.5',
      SMART_SCOPE_CONTEXTS: 'patient',
      SMART_TRUST_PROXY: 'loopback, 10.0.0.0/8',
    })
    assert.deepEqual(settings.bind, ['127.0.0.1', '10.0.0.5'])
    assert.deepEqual(settings.fhir.scopeContexts, ['patient'])
    assert.equal(settings.trustProxy, 'loopback,10.0.0.0/8')
    assert.equal(settings.onLoopback, false)
  })
})

describe('readConfiguration', () => {
  it('warns once about each unknown SMART_ variable (SETTING-3)', () => {
    const env = { SMART_ISSUER: 'x', SMART_TEAPOT: 'y', SMARTER: 'z', PATH: '/bin' }
    assert.deepEqual(readConfiguration(env, folder).warnings, [
      'Unknown variable SMART_ISSUER is ignored: did you mean SMART_ISSUER_URL?',
      'Unknown variable SMART_TEAPOT is ignored',
    ])
  })

  it('reports the source of each value', () => {
    const cwd = mkdtempSync(join(folder, 'cwd-'))
    writeFileSync(join(cwd, 'sallyport.yaml'), 'smart.server.auth-port: 9001')
    const { sources } = readConfiguration({ SMART_FHIR_PORT: '8001' }, cwd)
    assert.equal(sources.get('authPort'), 'file')
    assert.equal(sources.get('fhirPort'), 'environment')
    assert.equal(sources.get('appPort'), 'default')
  })
})

describe('a secret in a file', () => {
  const secretFile = join(folder, 'a-secret')
  const secrets = settingRows.filter(([, row]) => row.secret || row.hasPassword)

  it('is read for every secret, from the variable and from the name in the file (SETTING-10)', () => {
    assert.ok(secrets.length >= 8)
    for (const [key, row] of secrets) {
      const text = textFor(row)
      writeFileSync(secretFile, `${text}\n`)
      writeFileSync(join(folder, 'with-files.yaml'), `${row.name}-file: a-secret`)
      for (const env of [{ [`${row.env}_FILE`]: secretFile }, { SMART_CONFIG: 'with-files.yaml' }]) {
        const { settings, sources, warnings } = readConfiguration(env, folder)
        assert.deepEqual([getValue(settings, key), warnings], [row.type.parse(text), []], row.name)
        assert.notEqual(sources.get(key), 'default')
      }
    }
  })

  it('must be the only value, must exist and must not be empty (SETTING-10)', () => {
    writeFileSync(secretFile, '')
    const env = { SMART_SECRET_FILE: secretFile }
    assert.throws(() => read({ ...env, SMART_SECRET: 'a secret of some length' }), {
      message: 'Cannot use SMART_SECRET and SMART_SECRET_FILE: set only one of them',
    })
    assert.throws(() => read(env), /^SettingsError: Cannot use SMART_SECRET_FILE: .*a-secret is empty$/)
    assert.throws(
      () => read({ SMART_SECRET_FILE: 'none' }),
      /Cannot use SMART_SECRET_FILE: cannot read none: there is no such file/,
    )
    writeFileSync(secretFile, 'short')
    assert.throws(() => read(env), /^SettingsError: Cannot use SMART_SECRET_FILE: expected (?!.*short)/)
    writeFileSync(join(folder, 'twice.yaml'), 'smart.server.secret: a\nsmart.server.secret-file: a-secret')
    assert.throws(() => read({ SMART_CONFIG: 'twice.yaml' }), /smart.server.secret is set twice/)
  })

  it('exists for secrets only', () => {
    const { warnings } = readConfiguration({ SMART_APP_URL_FILE: 'x' }, folder)
    assert.match(warnings.join(), /^Unknown variable SMART_APP_URL_FILE is ignored/)
  })
})

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
      SMART_LAB_EXPOSES_ALL_PATIENTS: 'true',
      SMART_OPEN_METRICS: 'true',
      SMART_LOG_LEVEL: 'debug',
      SMART_OPEN_REGISTRATION: 'false',
      SMART_REGISTRATION_TOKEN: 'a token for registration',
      SMART_LOGIN_PASSWORDS: 'false',
      SMART_LOGIN_MIN_PASSWORD_LENGTH: '12',
      SMART_LOGIN_SECOND_FACTOR: 'all',
      SMART_LOGIN_PROVIDERS: '[{"id":"a","issuer":"http://localhost:1","client-id":"c"}]',
      SMART_AGENTS_ENABLED: 'false',
      SMART_AGENTS_OFFLINE_ACCESS: 'true',
      SMART_AGENTS_SCOPE_CONTEXTS: 'user',
      SMART_AGENTS_PROPOSAL_DAYS: '3',
      SMART_CDS_SERVICES: '[{"id":"a","url":"http://localhost:1","client-id":"c"}]',
      SMART_APP_AUTH_METHOD: 'none',
      SMART_AUDIT: 'false',
      SMART_AUDIT_PATIENT_SEARCH: 'false',
      SMART_AUDIT_FAILURE: 'allow',
      SMART_AUDIT_FEED_URL: 'http://localhost:7',
      SMART_AUDIT_SYSLOG_URL: 'tls://localhost:7',
      SMART_APP_CLIENT_ID: 'other',
      SMART_BRAND_COLOUR: '#123456',
      SMART_BRAND_DARK_COLOUR: '#abcdef',
      SMART_APP_SCOPE: 'openid',
      SMART_APP_ISSUERS: 'http://localhost:5',
      SMART_APP_FRAME_ORIGINS: 'https://ehr.example',
      SMART_FHIR_VERSION_ACCESS: 'version',
      SMART_FHIR_UPSTREAM_URL: 'http://localhost:6',
      SMART_FHIR_UPSTREAM_ALIASES: 'http://localhost:7',
      SMART_FHIR_UPSTREAM_NARROWING: 'parameter',
      SMART_FHIR_UPSTREAM_PROFILE: 'hapi',
      SMART_FHIR_UPSTREAM_SEARCH_CACHE: 'allow',
      SMART_FHIR_UPSTREAM_EXPORT: 'relay',
      SMART_FHIR_UPSTREAM_OPERATIONS: '$meta',
      SMART_FHIR_UPSTREAM_SEARCH_PARAMETERS: 'mrn',
      SMART_FHIR_UPSTREAM_AUTH: 'basic',
      SMART_FHIR_UPSTREAM_TOKEN_URL: 'http://localhost:8/token',
      SMART_FHIR_SMART_CONFIGURATION_URL: 'http://localhost:9/smart',
      SMART_SEARCH_LETTER: 's',
      SMART_SCOPE_CONTEXTS: 'patient',
      SMART_FHIR_RELATION_CONTEXTS: 'user',
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
      SMART_LOGIN_PROVIDERS:
        '[{"id":"a","issuer":"http://localhost:1","client-id":"c","client-secret":"hush"}]',
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

const texts = { issuerUrl: 'http://localhost:1', dataDir: '/some/folder' }

describe('overridden settings', () => {
  it('replace the variables of a setting and keep the others', () => {
    const env = { SMART_DATA_DIR: '/a', SMART_APP_URL: 'http://localhost:2' }
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
