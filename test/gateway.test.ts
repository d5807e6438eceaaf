/** `npm start` with an upstream: the three servers as processes, the data in a FHIR server behind the gateway. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { startUpstream, type UpstreamProcess } from '../src/backends/upstream/testing/start-gateway.ts'
import { samplePatients } from '../src/sample-patients/index.ts'
import { sallyport } from './support/command-line.ts'
import { HttpUser } from './support/http-user.ts'
import { newPlace, type Place, type Started, startProcess } from './support/started.ts'

describe('npm start with an upstream', () => {
  let upstream: UpstreamProcess
  let place: Place
  let started: Started
  let user: HttpUser
  before(async () => {
    upstream = await startUpstream()
    place = await newPlace({ SMART_FHIR_UPSTREAM_URL: upstream.url })
    const sample = [...samplePatients({ now: Date.now(), count: 3 })]
    writeFileSync(join(place.folder, 'sample.ndjson'), sample.map(it => JSON.stringify(it)).join('\n'))
    const { env, folder } = place
    const imported = await sallyport(['data', 'import', '--to', upstream.url, 'sample.ndjson'], {
      cwd: folder,
      env,
    })
    assert.equal(imported.exitCode, 0, imported.stderr + imported.stdout)
    started = startProcess(['start'], place)
    await started.printed(/is running/)
    const settings = { issuerUrl: place.authUrl, appUrl: place.appUrl }
    const login = { username: 'clinician', password: 'sallyport', name: 'Dr. Robin Ahmadi' }
    user = new HttpUser({ settings, user: login })
    await user.signIn()
  })
  after(async () => {
    started.child.kill('SIGTERM')
    await started.ended()
    await upstream.end()
    place.remove()
  })

  it('launches from the portal, and serves the session API', async () => {
    await user.launch('patient-1')
    for (const path of ['session', 'me', 'patient', 'conditions', 'medications', 'vitals', 'summary'])
      assert.equal((await user.api(path)).status, 200, path)
    const patient = (await (await user.api('patient')).json()) as { readonly id: string }
    assert.equal(patient.id, 'patient-1')
    const conditions = (await (await user.api('conditions')).json()) as { readonly total: number }
    assert.equal(typeof conditions.total, 'number')
  })

  it('shows a patient who looked, with the role that the upstream has (PATIENTS-6)', async () => {
    const { env, folder } = place
    const given = { cwd: folder, env, stdin: 'four plain words here\n' }
    const added = await sallyport(['account', 'add', '--username', 'alba', '--patient', 'patient-1'], given)
    assert.equal(added.exitCode, 0, added.stderr)
    const settings = { issuerUrl: place.authUrl, appUrl: place.appUrl }
    const login = { username: 'alba', password: 'four plain words here', name: 'alba' }
    const alba = new HttpUser({ settings, user: login })
    await alba.signIn()
    await user.launch('patient-1')
    const page = await (await alba.open(`${place.authUrl}/account/access-log`)).text()
    assert.match(
      page,
      /Dr\. Robin Ahmadi<\/b><span class="sub">Cardiologist, Outpatient clinics, Sallyport General/,
    )
    assert.match(page, /looked at your [^.]*conditions/)
  })

  it('is ready if its upstream is, and writes no sample patients to it (START-4)', async () => {
    const ready = (await (await fetch(`${place.fhirUrl.replace('/fhir', '')}/readyz`)).json()) as {
      readonly checks: readonly { readonly name: string; readonly ok: boolean }[]
    }
    assert.deepEqual(ready.checks.find(it => it.name === 'upstream')?.ok, true)
    const counted = await fetch(`${upstream.url}/Patient?_summary=count`)
    assert.equal(((await counted.json()) as { readonly total: number }).total, 3)
    const metadata = await (await fetch(`${place.fhirUrl}/metadata`)).text()
    assert(!metadata.includes(upstream.url))
    assert(metadata.includes(place.fhirUrl))
  })
})
