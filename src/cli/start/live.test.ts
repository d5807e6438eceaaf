import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { makeCertificate } from '../../../test/support/certificate.ts'
import { readConfiguration } from '../../config/index.ts'
import { createLogger } from '../../web/http/index.ts'
import { createControls, createLiveFilter, followLogLevel, LiveState, readLive } from './live.ts'

const folder = mkdtempSync(join(tmpdir(), 'live-'))
after(() => rmSync(folder, { recursive: true }))
const policyFile = join(folder, 'policy.yaml')
const settingsFile = join(folder, 'sallyport.yaml')
const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]

const NAMES = ['auth', 'fhir', 'app']
const EVERYONE = 'rules: [{clinicians: all, patients: all}]'
const kim = { type: 'Practitioner', id: 'kim' }
const URLS = {
  SMART_ISSUER_URL: 'https://localhost:9000',
  SMART_FHIR_BASE_URL: 'https://localhost:8080/fhir',
  SMART_APP_URL: 'https://localhost:8081',
}

function writeCertificate({ cert, key } = makeCertificate()): string {
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key)
  return cert
}

function open(more: Readonly<Record<string, string>> = {}) {
  writeFileSync(policyFile, EVERYONE)
  writeFileSync(settingsFile, 'smart.server.access-token-ttl-seconds: 300')
  writeCertificate()
  const env = {
    ...URLS,
    SMART_POLICY_FILE: policyFile,
    SMART_TLS_CERT: certFile,
    SMART_TLS_KEY: keyFile,
    SMART_CONFIG: settingsFile,
    SMART_DATA_DIR: folder,
    ...more,
  }
  const read = () => {
    const configuration = readConfiguration(env, folder)
    return { configuration, live: readLive(configuration.settings, NAMES) }
  }
  const { configuration: initial, live: first } = read()
  const live = new LiveState(first)
  const lines: string[] = []
  const logger = createLogger({ destination: { write: line => void lines.push(line) } })
  followLogLevel(live, logger)
  const controls = createControls({ names: NAMES, live, initial, read, logger })
  return { live, controls, logger, lines }
}

describe('a reload of the settings', () => {
  it('applies a new policy and new providers, and names the settings that need a restart (SETTING-11)', async () => {
    const { live, controls } = open()
    const filter = createLiveFilter(live)
    assert.equal(filter(kim, 'Patient', 'r'), 'everything')
    writeFileSync(policyFile, 'rules: [{clinicians: [Practitioner/kim], patients: [1]}]')
    const provider = '{id: staff, name: Staff, issuer: "https://idp.example", client-id: sallyport}'
    writeFileSync(
      settingsFile,
      `smart.server.access-token-ttl-seconds: 60\nsmart.login.providers: [${provider}]`,
    )
    const needRestart = ['smart.server.access-token-ttl-seconds']
    assert.deepEqual(await controls.reload(), {
      changed: ['sign-in provider staff: added', 'policy: changed'],
      needRestart,
    })
    assert.deepEqual(await controls.reload(), { changed: [], needRestart })
    assert.deepEqual(filter(kim, 'Patient', 'r'), [{ patient: '1' }])
    assert.deepEqual(
      live.current.login.providers.map(({ id }) => id),
      ['staff'],
    )
  })

  it('names what changed, was added and was removed, and no value (SETTING-11)', async () => {
    const { controls, lines } = open()
    const write = (secret: string, more = '') => {
      const provider = `{id: staff, issuer: "https://idp.example", client-id: c, client-secret: ${secret}}`
      writeFileSync(settingsFile, `smart.login.providers: [${provider}]\n${more}`)
    }
    write('first-secret')
    await controls.reload()
    write('second-secret', 'smart.login.second-factor: all')
    writeCertificate()
    assert.deepEqual((await controls.reload()).changed, [
      'smart.login.second-factor: changed',
      'sign-in provider staff: changed',
      'certificates of the servers: changed',
    ])
    writeFileSync(settingsFile, 'smart.login.second-factor: all')
    assert.deepEqual((await controls.reload()).changed, ['sign-in provider staff: removed'])
    assert.match(lines.join(''), /"changed":\["sign-in provider staff: removed"\]/)
    assert.doesNotMatch(lines.join(''), /-secret/)
  })

  it('changes nothing and lists every problem if a file or a setting is invalid (SETTING-11)', async () => {
    const { live, controls, lines } = open()
    const before = live.current
    writeFileSync(policyFile, 'rules: [{clinicians: [Practitioner/kim], patients: [1]}]')
    writeFileSync(settingsFile, 'smart.server.workers: many\nsmart.app.timeout-seconds: no')
    const { problems = [] } = await controls.reload()
    assert.deepEqual(
      problems.map(problem => problem.split(':')[0]),
      ['Cannot use smart.server.workers', 'Cannot use smart.app.timeout-seconds'],
    )
    writeFileSync(settingsFile, '')
    writeFileSync(policyFile, 'rules: everybody')
    assert.match((await controls.reload()).problems?.[0] ?? '', /^Cannot use policy file .*rules/)
    assert.equal(live.current, before)
    assert.match(lines.join(''), /Cannot reload the settings: those in effect stay/)
  })

  it('keeps a log level that was set at run time, unless the setting changes (SETTING-13)', async () => {
    const { live, controls, logger } = open()
    await controls.setLogLevel('debug')
    await controls.reload()
    assert.deepEqual([controls.getLogLevel(), logger.level], ['debug', 'debug'])
    writeFileSync(settingsFile, 'smart.server.log-level: error')
    await controls.reload()
    assert.deepEqual([live.current.logLevel, logger.level], ['error', 'error'])
  })
})

describe('the certificates', () => {
  it('are replaced when the files change (SETTING-12)', async () => {
    const { live, controls, lines } = open()
    const first = live.current
    await controls.refreshCertificates()
    assert.equal(live.current, first)
    const cert = writeCertificate()
    await controls.refreshCertificates()
    assert.equal(live.current.tls?.cert, cert)
    assert.match(lines.join(''), /Certificates replaced/)
  })

  it('stay if certificate and key do not match, which is logged once (SETTING-12)', async () => {
    const { live, controls, lines } = open()
    const first = live.current
    writeFileSync(certFile, makeCertificate().cert)
    await controls.refreshCertificates()
    await controls.refreshCertificates()
    assert.equal(live.current, first)
    assert.equal(lines.filter(line => line.includes('Cannot use the new certificates')).length, 1)
    const cert = writeCertificate()
    await controls.refreshCertificates()
    assert.equal(live.current.tls?.cert, cert)
  })

  it('for the upstream are also tested (SETTING-12)', async () => {
    const { live, controls } = open({
      SMART_FHIR_UPSTREAM_URL: 'https://upstream.example/fhir',
      SMART_FHIR_UPSTREAM_TLS_CERT: certFile,
      SMART_FHIR_UPSTREAM_TLS_KEY: keyFile,
      SMART_TLS_CERT: '',
      SMART_TLS_KEY: '',
    })
    const first = live.current
    writeFileSync(certFile, makeCertificate().cert)
    await controls.refreshCertificates()
    assert.equal(live.current, first)
    const cert = writeCertificate()
    await controls.refreshCertificates()
    assert.equal(live.current.upstreamTls.cert, cert)
  })
})
