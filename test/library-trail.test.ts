/** A FHIR server of somebody else, with the interceptor and the auth server's trail: what people see of its requests. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createAuditor, findRecords } from '../src/audit/index.ts'
import { SigningClient } from '../src/auth/testing/signing-client.ts'
import { TestAuthServer } from '../src/auth/testing/test-auth-server.ts'
import { createTrailSender, type Fetch, type TrailSender } from '../src/interceptor/index.ts'
import { leakyHosts } from '../src/interceptor/testing/test-host.ts'
import { sha256 } from '../src/store/index.ts'
import { eachDatabase } from './support/databases.ts'

const juniper = { resourceType: 'Patient', id: 'juniper', name: [{ family: 'Juniper' }] }

eachDatabase((_name, open) => {
  for (const [framework, start] of Object.entries(leakyHosts))
    describe(`the trail of the auth server, of a host with ${framework}`, () => {
      let auth: TestAuthServer
      let trail: TrailSender
      let host: Awaited<ReturnType<typeof start>>
      let token = ''
      let isAway = false
      const askAuth: Fetch = async (url, init) => {
        if (isAway) throw new TypeError('fetch failed')
        const { pathname, search } = new URL(url)
        const { body } = init
        const form = body instanceof URLSearchParams
        const response = await auth.app.inject({
          method: init.method === 'POST' ? 'POST' : 'GET',
          url: pathname + search,
          headers: {
            ...(init.headers as Record<string, string>),
            ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
          },
          ...(body && { payload: String(body) }),
        })
        return new Response(response.body, { status: response.statusCode })
      }

      before(async () => {
        const store = await open()
        auth = await TestAuthServer.open(store, { audit: createAuditor({ store }), settings: { lab: true } })
        // The trail and the tokens have the same time as the host.
        auth.time.now = Date.now()
        await auth.addClient({
          client_id: 'lab-server',
          auth_method: 'client_secret',
          secret_hash: sha256('a secret'),
          scope: 'sallyport/audit',
        })
        await auth.addUser('alba', { fhir_user_id: 'Patient/juniper' })
        const { issuerUrl: authUrl, fhirBaseUrl } = auth.settings
        trail = createTrailSender({
          authUrl,
          fhirBaseUrl,
          clientId: 'lab-server',
          credential: { secret: 'a secret' },
          fetch: askAuth,
        })
        host = await start({ authUrl, fhirBaseUrl, fetch: askAuth, trail }, (_request, response) => {
          response.setHeader('content-type', 'application/fhir+json')
          response.end(JSON.stringify(juniper))
        })
        const code = await auth.getCode(await auth.logIn())
        token = (await auth.exchange(code)).json().access_token
      })
      after(async () => {
        await host.close()
        await trail.close()
      })

      const read = async (path: string) => {
        const { status } = await fetch(`${host.url}/fhir/${path}`, {
          headers: { authorization: `Bearer ${token}` },
        })
        return status
      }
      const listReported = async () =>
        (await findRecords(auth.store, { events: [{ kind: 'fhir' }], limit: 100, order: 'oldest' })).map(
          it => [it.request, it.allowed, it.patient_id, it.details],
        )
      const reported = '{"reportedBy":"lab-server"}'

      it('shows them on /activity and to the patient, with the launch, app and clinician (AUDIT-24)', async () => {
        assert.deepEqual([await read('Patient/juniper'), await read('Patient/ashlar')], [200, 403])
        const patient = await auth.logIn('alba')
        const readLog = async () => (await patient.get('/account/access-log')).body
        assert.doesNotMatch(await readLog(), /Dr\. Robin Ahmadi/)
        await trail.flush()
        assert.match(await readLog(), /Dr\. Robin Ahmadi/)
        assert.deepEqual(await listReported(), [
          ['Patient/juniper', true, 'juniper', reported],
          ['Patient/ashlar', false, null, reported],
        ])
        const activity = (await (await auth.logIn()).get('/activity')).body
        assert.match(activity, /<h2>Demo app<\/h2>[\s\S]*EHR launch[\s\S]*5 events, 1 refused/)
        assert.match(activity, /<dt>Reported by<\/dt><dd><code>lab-server<\/code>/)
      })

      it('gets each request once after an outage, also if a confirmation is lost (AUDIT-24)', async () => {
        const before = (await listReported()).length
        isAway = true
        for (let times = 0; times < 3; times++) assert.equal(await read('Patient/juniper'), 200)
        await trail.flush()
        assert.deepEqual([(await listReported()).length, trail.waiting], [before, 3])
        isAway = false
        await Promise.all([trail.flush(), trail.flush()])
        assert.deepEqual([(await listReported()).length, trail.waiting], [before + 3, 0])
      })

      it('gets each request, whatever its sender wrote into it (AUDIT-24)', async () => {
        const errors: unknown[] = []
        const { issuerUrl: authUrl, fhirBaseUrl } = auth.settings
        const sender = createTrailSender({
          authUrl,
          fhirBaseUrl,
          clientId: 'lab-server',
          credential: { secret: 'a secret' },
          fetch: askAuth,
          onError: error => errors.push(error),
        })
        const hostile = [
          { address: 'root@server' },
          { address: 'x'.repeat(5000) },
          { method: 'M-SEARCH' },
          { method: '\0' },
          { token: 'onrtro:1f3b9a3e' },
          { token: 'a b', launch: 'c d' },
          { status: Number.NaN },
          { status: 999 },
          { id: 'a_b' },
          { type: 'x', interaction: 'X', fhirUser: 'y', requestId: ' ' },
          { reason: '\0\ud800', request: '\u202e' },
        ]
        const before = (await listReported()).length
        for (const one of hostile)
          sender.send({ at: Date.now(), server: 'fhir', kind: 'fhir', allowed: true, status: 200, ...one })
        await sender.close()
        assert.deepEqual([errors, sender.waiting], [[], 0])
        assert.equal((await listReported()).length, before + hostile.length)
      })

      it('gets them from a client with keys too', async () => {
        const client = new SigningClient('key-server', auth.time)
        await auth.addClient({
          client_id: 'key-server',
          auth_method: 'private_key_jwt',
          jwks: client.jwks,
          scope: 'sallyport/audit',
        })
        const { issuerUrl: authUrl, fhirBaseUrl } = auth.settings
        const sender = createTrailSender({
          authUrl,
          fhirBaseUrl,
          clientId: 'key-server',
          credential: client,
          fetch: askAuth,
        })
        sender.send({ at: auth.time.now, server: 'fhir', kind: 'fhir', allowed: true, status: 200 })
        await sender.close()
        assert.equal(sender.waiting, 0)
        assert.ok((await listReported()).some(([, , , details]) => details === '{"reportedBy":"key-server"}'))
      })
    })
})
