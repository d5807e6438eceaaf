import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { createAuditor, createFhirAudit, findRecords } from '../src/audit/index.ts'
import { SqliteRows } from '../src/backends/sqlite/export-rows.ts'
import { fhirServer } from '../src/backends/sqlite/index.ts'
import { isFailure } from '../src/core/index.ts'
import { exportOperations, failFor, listGatewayOperations, type Resource } from '../src/fhir/index.ts'
import { EXPORT_DOWNLOADS, EXPORT_DOWNLOADS_WAITING } from '../src/fhir-api/export/limits.ts'
import { refuse } from '../src/interceptor/index.ts'
import { type Authenticator, createUserFilter, parsePolicy } from '../src/smart/index.ts'
import { createSealer, type Store } from '../src/store/index.ts'
import { createBulkClient, type Manifest } from './support/bulk-client.ts'
import {
  ADMIN,
  bearerOf,
  type GuardedFhir,
  shownIn,
  startGuardedFhir,
  type TestCaller,
} from './support/guarded-fhir.ts'
import { GUARDED_SERVERS, type OpenGuarded } from './support/guarded-servers.ts'
import { openSqliteStore } from './support/sqlite-store.ts'

const of = (patient: string) => ({ subject: { reference: `Patient/${patient}` } })
const category = (code: string) => ({
  category: [{ coding: [{ system: 'http://terminology.hl7.org/CodeSystem/observation-category', code }] }],
})
const observation = (id: string, patient: string, code: string) => ({
  resourceType: 'Observation',
  id,
  status: 'final',
  code: { text: 'x' },
  ...category(code),
  ...of(patient),
})
const provenance = (id: string, target: string) => ({
  resourceType: 'Provenance',
  id,
  target: [{ reference: target }],
  recorded: '2026-01-01T00:00:00Z',
  agent: [{ who: { reference: 'Practitioner/dr' } }],
})

const DATA = [
  { resourceType: 'Practitioner', id: 'dr', name: [{ family: 'Who' }] },
  { resourceType: 'Patient', id: 'ann', name: [{ family: 'Ann' }], birthDate: '1980-01-01' },
  { resourceType: 'Patient', id: 'bob', name: [{ family: 'Bob' }] },
  {
    resourceType: 'Group',
    id: 'g',
    type: 'person',
    actual: true,
    member: [
      { entity: { reference: 'Patient/ann' } },
      { entity: { reference: 'Patient/bob' }, inactive: true },
    ],
  },
  observation('oa-vital', 'ann', 'vital-signs'),
  observation('oa-lab', 'ann', 'laboratory'),
  observation('ob-vital', 'bob', 'vital-signs'),
  provenance('pa', 'Observation/oa-lab'),
  provenance('pb', 'Observation/ob-vital'),
  { resourceType: 'Binary', id: 'b', contentType: 'text/plain', data: 'aGk=' },
  {
    resourceType: 'DocumentReference',
    id: 'da',
    status: 'current',
    ...of('ann'),
    content: [{ attachment: { contentType: 'text/plain', url: 'Binary/b' } }],
  },
]

const SERVICE: TestCaller = { scope: 'system/*.rs', patient: null, client_id: 'service' }
const OF_ANN = ['DocumentReference/da', 'Observation/oa-lab', 'Observation/oa-vital', 'Patient/ann']

const patients = (...ids: readonly string[]) => ({
  resourceType: 'Parameters',
  parameter: ids.map(id => ({ name: 'patient', valueReference: { reference: `Patient/${id}` } })),
})

/** A policy limits clinicians, who cannot export. */
const RIGHTS = parsePolicy({ rules: [{ clinicians: 'all', patients: ['bob'] }] })
assert(!isFailure(RIGHTS))
const ONLY_BOB = createUserFilter(RIGHTS)

interface Server {
  readonly fhir: GuardedFhir
  readonly store: Store
  /** Milliseconds by which the clock of the server is ahead. */
  readonly clock: { ahead: number; step: number }
  /** The number of checks of a token after which it is revoked. */
  readonly token: { checksLeft: number }
  as(caller: Partial<TestCaller>): ReturnType<typeof createBulkClient>
  /** The origin of the server, which listens on a port from then on. */
  listen(): Promise<string>
  close(): Promise<void>
}

async function startServer(open: OpenGuarded, fileResources = 2): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-export-'))
  const store = await openSqliteStore(`sqlite:${join(folder, 'store.db')}`)
  const clock = { ahead: 0, step: 0 }
  const token = { checksLeft: Number.POSITIVE_INFINITY }
  const auditor = createAuditor({ store })
  const fhir = await startGuardedFhir(
    DATA,
    { operations: [...exportOperations, ...listGatewayOperations()], userFilter: ONLY_BOB },
    (guard, baseUrl) =>
      open(revokeLate(guard, token), baseUrl, createFhirAudit({ auditor, store, fhirBaseUrl: baseUrl }), {
        clock() {
          clock.ahead += clock.step
          return Date.now() + clock.ahead
        },
        exports: { store, sealer: createSealer('secret'), lifetimeMs: 3_600_000, fileResources },
      }),
  )
  return {
    fhir,
    store,
    clock,
    token,
    as: caller =>
      createBulkClient(fhir.app, { ...SERVICE, ...caller }, seconds => {
        clock.ahead += seconds * 1000
      }),
    async listen() {
      const { server } = fhir.app
      if (!server.listening) await fhir.app.listen({ port: 0, host: '127.0.0.1' })
      const address = server.address()
      return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
    },
    async close() {
      await fhir.close()
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Accepts the tokens of a guard until they are revoked. */
function revokeLate(guard: Authenticator, token: { checksLeft: number }): Authenticator {
  return {
    authenticate: authorization =>
      token.checksLeft-- > 0 ? guard.authenticate(authorization) : refuse(failFor('token-revoked')),
  }
}

/** The resources after each header of the files of an export, which all begin with one. */
async function readBlocks(
  { output }: Manifest,
  client: ReturnType<typeof createBulkClient>,
  most = Number.POSITIVE_INFINITY,
): Promise<Readonly<Record<string, readonly string[]>>> {
  const blocks: Record<string, string[]> = {}
  let continued: string | undefined
  for (const { type, count, url, continuesInFile } of output) {
    assert.deepEqual([type, count], [undefined, undefined])
    const lines = await client.download(url)
    assert(lines.length <= most)
    let header = ''
    for (const [at, line] of lines.entries()) {
      if (line.resourceType === 'Parameters') {
        const [parameter] = line.parameter as readonly {
          readonly name: string
          readonly valueReference: { readonly reference: string }
        }[]
        assert.equal(parameter?.name, 'header')
        header = parameter.valueReference.reference
        assert(blocks[header] === undefined || (at === 0 && continued === url))
        blocks[header] ??= []
      } else blocks[header]?.push(`${line.resourceType}/${line.id}`)
    }
    continued = continuesInFile
  }
  for (const lines of Object.values(blocks)) lines.splice(1, lines.length, ...lines.slice(1).sort())
  return blocks
}

for (const [name, open] of Object.entries(GUARDED_SERVERS)) {
  const isEmbedded = name.includes('embedded')

  describe(`a bulk export of ${name}`, () => {
    let server: Server
    before(async () => {
      server = await startServer(open)
    })
    after(() => server.close())
    const asService = () => server.as({})

    it('has every resource that the token covers, once (EXPORT-1)', async () => {
      const manifest = await asService().run('GET $export')
      const all = DATA.filter(it => it.resourceType !== 'Binary').map(it => `${it.resourceType}/${it.id}`)
      assert.deepEqual(await asService().list(manifest), all.sort())
      assert.equal(manifest.requiresAccessToken, true)
      assert.equal(manifest.request, 'http://localhost:8080/fhir/$export')
      assert.deepEqual([manifest.deleted, manifest.error], [[], []])
    })

    it('of a Group has the records of its active patients, their Provenance, and what these share (EXPORT-2)', async () => {
      const manifest = await asService().run('GET Group/g/$export')
      assert.deepEqual(
        await asService().list(manifest),
        [...OF_ANN, 'Practitioner/dr', 'Provenance/pa'].sort(),
      )
    })

    it('of all patients has what belongs to a patient (EXPORT-2)', async () => {
      const manifest = await asService().run('GET Patient/$export?_type=Patient,Observation')
      assert.deepEqual(await asService().list(manifest), [
        'Observation/oa-lab',
        'Observation/oa-vital',
        'Observation/ob-vital',
        'Patient/ann',
        'Patient/bob',
      ])
    })

    it('by POST has the named patients only, and no other parameter names them (EXPORT-2)', async () => {
      const body = patients('bob')
      const manifest = await asService().run('POST Patient/$export', { body })
      assert.deepEqual(await asService().list(manifest), [
        'Observation/ob-vital',
        'Patient/bob',
        'Practitioner/dr',
        'Provenance/pb',
      ])
      for (const [line, more, why] of [
        ['POST $export', { body }, 'Cannot export with the parameter patient: it is not supported here'],
        ['POST Group/g/$export', { body }, 'Cannot export Patient/bob: it is not a patient of this export'],
        [
          'POST Patient/$export',
          { body: patients('nobody') },
          'Cannot export Patient/nobody: it is not a patient of this export',
        ],
        [
          'GET Patient/$export?patient=Patient/bob',
          {},
          'Cannot read patient: expected references to patients (valueReference) in the body of a POST',
        ],
      ] as const) {
        const [method, url] = line.split(' ')
        const reply = await asService().ask(method === 'POST' ? 'POST' : 'GET', url ?? '', more)
        assert.deepEqual([reply.status, reply.why], [400, why])
      }
    })

    it('refuses parameters that are wrong or not supported; a lenient client learns of them in the manifest (EXPORT-3)', async () => {
      for (const query of [
        '_foo=1',
        '_outputFormat=csv',
        '_since=yesterday',
        '_since=2026-01-01',
        '_type=Nothing',
        '_type=AuditEvent',
        '_typeFilter=Observation',
        '_typeFilter=Observation%3F_sort=date',
        '_typeFilter=Observation%3Fpatient.name=ann',
        '_elements=Patient.name.family',
        'includeAssociatedData=_other',
        'includeAssociatedData=RelevantProvenanceResources,_other',
        'organizeOutputBy=Encounter',
        'organizeOutputBy=Patient%26_type=Practitioner',
        'allowPartialManifests=maybe',
      ]) {
        const reply = await asService().ask('GET', `$export?${query}`)
        assert.equal(reply.status, 400, query)
        assert.match(
          reply.why ?? '',
          new RegExp(query.startsWith('_type=A') ? 'AuditEvent' : (/^\w+/.exec(query)?.[0] ?? '')),
        )
        const headers = { prefer: 'respond-async, handling=lenient' }
        const manifest = await asService().run(`GET Patient/$export?${query}`, { headers })
        const [error, ...more] = manifest.error
        assert.equal(more.length, 0)
        const lines = await asService().download(error?.url ?? '')
        assert.deepEqual(
          lines.map(it => it.resourceType),
          ['OperationOutcome'],
        )
      }
    })

    it('accepts the three spellings of NDJSON and lists in repeated parameters (EXPORT-3)', async () => {
      for (const format of [
        'application/fhir%2Bndjson',
        'application/fhir+ndjson',
        'application/ndjson',
        'ndjson',
      ]) {
        const manifest = await asService().run(
          `GET $export?_outputFormat=${format}&_type=Patient&_type=Practitioner,Patient`,
        )
        assert.deepEqual(await asService().list(manifest), ['Patient/ann', 'Patient/bob', 'Practitioner/dr'])
      }
    })

    it('filters by queries, of which any may match (EXPORT-3)', async () => {
      const line =
        'GET $export?_type=Observation,Patient&_typeFilter=Observation%3Fcategory=laboratory&_typeFilter=Observation%3Fcategory=vital-signs%26subject=Patient/bob&_typeFilter=Observation%3F_id=oa-lab'
      assert.deepEqual(await asService().list(await asService().run(line)), [
        'Observation/oa-lab',
        'Observation/ob-vital',
        'Patient/ann',
        'Patient/bob',
      ])
    })

    it('leaves out elements, and says so (EXPORT-3)', async () => {
      const manifest = await asService().run(
        'GET $export?_type=Patient&_elements=birthDate,Practitioner.name',
      )
      const lines = await asService().download(manifest.output[0]?.url ?? '')
      const ann = lines.find(it => it.id === 'ann')
      assert.deepEqual([ann?.birthDate, ann?.name], ['1980-01-01', undefined])
      assert.match(JSON.stringify(ann?.meta), /SUBSETTED/)
    })

    it('has only the Provenance of what is exported (EXPORT-2)', async () => {
      const line =
        'GET $export?_type=DocumentReference,Observation&_typeFilter=Observation%3Fcategory=laboratory&includeAssociatedData=RelevantProvenanceResources'
      const found = await asService().list(await asService().run(line))
      assert.deepEqual(found, ['DocumentReference/da', 'Observation/oa-lab', 'Provenance/pa'])
    })

    it('has only the latest Provenance of each exported resource, or all of them (EXPORT-2)', async () => {
      const later = { ...provenance('pc', 'Observation/oa-lab'), recorded: '2026-02-01T00:00:00Z' }
      await server.fhir.ask('PUT /Provenance/pc', ADMIN, later)
      const run = async (values: string, types = 'Observation') =>
        asService().list(await asService().run(`GET $export?_type=${types}&includeAssociatedData=${values}`))
      const observations = ['Observation/oa-lab', 'Observation/oa-vital', 'Observation/ob-vital']
      const latest = [...observations, 'Provenance/pb', 'Provenance/pc']
      assert.deepEqual(await run('LatestProvenanceResources'), latest)
      assert.deepEqual(await run('LatestProvenanceResources', 'Observation,Provenance'), latest)
      assert.deepEqual(await run('RelevantProvenanceResources,LatestProvenanceResources'), [
        ...observations,
        'Provenance/pa',
        'Provenance/pb',
        'Provenance/pc',
      ])
      await server.fhir.ask('DELETE /Provenance/pc', ADMIN)
    })

    it('of patients has their Provenance also if it has nothing else (EXPORT-2)', async () => {
      const manifest = await asService().run('GET Group/g/$export?_type=Provenance')
      assert.deepEqual(await asService().list(manifest), ['Provenance/pa'])
    })

    it('is organized by patient: a header, the patient, and what belongs to it (EXPORT-10)', async () => {
      const manifest = await asService().run('GET $export?organizeOutputBy=Patient')
      assert.equal(manifest.outputOrganizedBy, 'Patient')
      const blocks = await readBlocks(manifest, asService(), isEmbedded ? 2 : undefined)
      assert.deepEqual(blocks, {
        'Patient/ann': ['Patient/ann', ...OF_ANN.filter(it => it !== 'Patient/ann')],
        'Patient/bob': ['Patient/bob', 'Observation/ob-vital'],
      })
      const laboratory = server.as({
        scope: 'system/Observation.rs?category=laboratory system/Patient.rs system/Group.rs',
      })
      const few = await laboratory.run('GET Group/g/$export?organizeOutputBy=Patient&_type=Observation')
      assert.deepEqual(await readBlocks(few, laboratory), { 'Patient/ann': ['Observation/oa-lab'] })
      const reply = await server
        .as({ scope: 'system/Observation.rs' })
        .ask('GET', '$export?organizeOutputBy=Patient')
      assert.deepEqual(
        [reply.status, reply.why],
        [403, 'Cannot export Patient: no scope of the token permits to read and search it'],
      )
      const unorganized = await asService().ask('GET', '$export?organizeOutputBy=Patient&_type=Practitioner')
      assert.match(unorganized.why ?? '', /^Cannot export Practitioner with organizeOutputBy/)
    })

    it('in one file has the patients one after the other (EXPORT-10)', async () => {
      const large = await startServer(open, 1_000)
      try {
        const client = large.as({})
        const manifest = await client.run(
          'GET Patient/$export?organizeOutputBy=Patient&_type=Patient,Observation',
        )
        assert.equal(manifest.output.length, 1)
        const lines = await client.download(manifest.output[0]?.url ?? '')
        assert.deepEqual(
          lines.map(it => it.id ?? 'header'),
          ['header', 'ann', 'oa-vital', 'oa-lab', 'header', 'bob', 'ob-vital'],
        )
      } finally {
        await large.close()
      }
    })

    it('shows files before all are known to a client that takes partial manifests, and never changes them (EXPORT-11)', async () => {
      const listFiles = async (text: string): Promise<readonly string[]> => {
        const { output, link }: Manifest = JSON.parse(text)
        const next = link?.[0] && (await asService().ask('GET', link[0].url))
        return [...output.map(it => it.url), ...(next ? await listFiles(next.text) : [])]
      }
      const status = await asService().start('GET $export?allowPartialManifests=true')
      server.clock.step = 150
      let files: readonly string[] = []
      let polls = 0
      for (let isReady = false; !isReady; polls++) {
        const reply = await asService().ask('GET', status)
        isReady = reply.status === 200
        const known = reply.text === '' ? [] : await listFiles(reply.text)
        assert.deepEqual(known.slice(0, files.length), files)
        files = known
        server.clock.ahead += 1_000
      }
      server.clock.step = 0
      assert(polls > 1)
      const whole = await asService().run('GET $export')
      const listed = { ...whole, output: files.map(url => ({ url })) }
      assert.deepEqual(await asService().list(listed), await asService().list(whole))
      assert.equal((await asService().ask('GET', `${status}&manifest=999`)).status, 404)
    })

    it('has files of limited size, by token, and the deletions since another export (EXPORT-4)', async () => {
      const put = (id: string) =>
        server.fhir.ask(`PUT /Flag/${id}`, ADMIN, {
          ...{ resourceType: 'Flag', id, status: 'active', code: { text: 'x' } },
          ...of(id === 'f4' ? 'bob' : 'ann'),
        })
      for (const id of ['f1', 'f2', 'f3', 'f4', 'f5']) {
        await put(id)
        await setTimeout(2)
      }
      const all = await asService().run('GET $export?_type=Flag')
      assert.equal((await asService().list(all)).length, 5)
      for (const { url } of all.output) assert((await asService().download(url)).length <= 2)
      const granular = server.as({ scope: 'system/Flag.rs?patient=Patient/ann' })
      const some = await granular.run('GET $export?_type=Flag')
      assert.deepEqual(await granular.list(some), ['Flag/f1', 'Flag/f2', 'Flag/f3', 'Flag/f5'])
      for (const { url } of some.output) assert((await granular.download(url)).length <= 2)
      await setTimeout(2)
      // The clock of the gateway is ahead of its upstream's.
      const since = isEmbedded ? all.transactionTime : new Date().toISOString()
      for (const id of ['f2', 'f4', 'f5']) await server.fhir.ask(`DELETE /Flag/${id}`, ADMIN)
      await put('f5')
      await setTimeout(2)
      const line = `GET $export?_type=Flag&_since=${since}`
      const later = await asService().run(line)
      assert.deepEqual(await asService().list(later), ['Flag/f5'])
      const list = async (manifest: Manifest, client: typeof granular) => {
        const files = await Promise.all(manifest.deleted.map(({ url }) => client.download(url)))
        return files.flatMap(lines => lines.map(it => JSON.stringify(it.entry))).sort()
      }
      const entry = (id: string) => JSON.stringify([{ request: { method: 'DELETE', url: `Flag/${id}` } }])
      assert.deepEqual(await list(later, asService()), [entry('f2'), entry('f4')])
      assert.deepEqual(await list(await granular.run(line), granular), [entry('f2')])
    })

    it('has attachments by URLs that the same token opens (EXPORT-2)', async () => {
      const manifest = await asService().run('GET $export?_type=DocumentReference')
      const [document] = await asService().download(manifest.output[0]?.url ?? '')
      const [url = ''] = JSON.stringify(document).match(/http[^"]*Binary\/b/) ?? []
      assert.equal((await asService().ask('GET', url)).text, 'hi')
    })

    it('has what the token may read and search, by type and by filter (EXPORT-1)', async () => {
      const granular = server.as({ scope: 'system/Observation.rs?category=laboratory system/Patient.rs' })
      const manifest = await granular.run('GET $export')
      assert.deepEqual(await granular.list(manifest), ['Observation/oa-lab', 'Patient/ann', 'Patient/bob'])
      const reply = await granular.ask('GET', '$export?_type=Observation,Practitioner')
      assert.deepEqual(
        [reply.status, reply.why],
        [403, 'Cannot export Practitioner: no scope of the token permits to read and search it'],
      )
      const headers = { prefer: 'handling=lenient' }
      const lenient = await granular.run('GET $export?_type=Patient,Practitioner', { headers })
      assert.deepEqual(await granular.list(lenient), ['Patient/ann', 'Patient/bob'])
      assert.match(
        JSON.stringify(await granular.download(lenient.error[0]?.url ?? '')),
        /Cannot export Practitioner/,
      )
    })

    it('has exactly what the searches of the same token find, whatever the policy gives clinicians (EXPORT-1)', async () => {
      for (const scopes of [
        [
          'Patient.rs?_id=ann',
          'Observation.rs?patient=Patient/ann',
          'DocumentReference.rs?patient=Patient/ann',
        ],
        ['Patient.rs?birthdate=gt1970-01-01', 'Observation.rs?category=laboratory'],
        ['Patient.rs', 'Observation.rs?subject=Patient/bob', 'Practitioner.rs'],
      ]) {
        const scope = scopes.map(it => `system/${it}`).join(' ')
        const client = server.as({ scope })
        const found: string[] = []
        for (const it of scopes)
          found.push(
            ...shownIn(
              await server.fhir.ask(`GET /${it.replace(/\..*/, '')}?_count=100`, { ...SERVICE, scope }),
            ),
          )
        assert.ok(found.length > 0)
        assert.deepEqual(await client.list(await client.run('GET $export')), found.sort(), scope)
      }
    })

    it('tells a limited client neither that there is something that it may not see, nor how much (EXPORT-1)', async () => {
      const granular = server.as({ scope: 'system/Observation.rs?category=laboratory system/Patient.rs' })
      const asked = new Date(Date.now() + server.clock.ahead).toISOString()
      server.clock.ahead += 10
      const hidden = ['hidden-1', 'hidden-2', 'hidden-3']
      for (const id of hidden)
        await server.fhir.ask(`PUT /Observation/${id}`, ADMIN, observation(id, 'ann', 'vital-signs'))
      const listFiles = async (query: string) => {
        const { output, deleted } = await granular.run(`GET $export?_type=Observation${query}`)
        return [output.length, deleted.length]
      }
      assert.deepEqual(await listFiles(''), [1, 0])
      assert.deepEqual(await listFiles(`&_since=${asked}`), [0, 0])
      for (const id of hidden) await server.fhir.ask(`DELETE /Observation/${id}`, ADMIN)
      assert.deepEqual(await listFiles(`&_since=${asked}`), [0, 0])
    })

    it('checks each line with the token of the download (EXPORT-4)', async () => {
      const manifest = await asService().run('GET $export?_type=Observation')
      const granular = server.as({ scope: 'system/Observation.rs?category=laboratory' })
      const lines: string[] = []
      for (const { url } of manifest.output)
        lines.push(...(await granular.download(url)).map(it => String(it.id)))
      assert.deepEqual(lines, ['oa-lab'])
      const other = server.as({ scope: 'system/Condition.rs' })
      for (const { url } of manifest.output) assert.deepEqual(await other.download(url), [])
    })

    it('is for backend services: other tokens get a 403 that says so (EXPORT-5)', async () => {
      for (const caller of [
        { scope: 'patient/*.rs', patient: 'ann' },
        { scope: 'user/*.rs', fhirUser: 'Practitioner/dr' },
        { scope: 'system/*.rs patient/*.rs', patient: 'ann' },
        { scope: 'system/Patient.c' },
      ])
        for (const url of [
          '$export',
          'Patient/$export',
          'Group/g/$export',
          '$export-status?job=1',
          '$export-file?of=1',
        ]) {
          const reply = await server.as(caller).ask('GET', url)
          assert.equal(reply.status, 403, url)
          assert.match(reply.why ?? '', /^Cannot export: a bulk export needs the token of a backend service/)
        }
    })

    it('does not show Groups that are absent or outside the scopes (EXPORT-2)', async () => {
      for (const [caller, id] of [
        [{}, 'none'],
        [{ scope: 'system/Patient.rs' }, 'g'],
        [{ scope: 'system/*.rs?_id=x' }, 'g'],
      ] as const) {
        const reply = await server.as(caller).ask('GET', `Group/${id}/$export`)
        assert.deepEqual([reply.status, reply.why], [404, `Cannot find Group/${id}`])
      }
    })

    it('ends with a DELETE; it and its files are a 404 then, and for every other client (EXPORT-6)', async () => {
      const status = await asService().start('GET $export?_type=Patient')
      const manifest = await asService().poll(status)
      const file = manifest.output[0]?.url ?? ''
      const other = server.as({ client_id: 'other' })
      for (const url of [status, file]) assert.equal((await other.ask('GET', url)).status, 404)
      assert.equal((await other.ask('DELETE', status)).status, 404)
      assert.equal((await asService().ask('DELETE', status)).status, 202)
      for (const [method, url] of [
        ['GET', status],
        ['GET', file],
        ['DELETE', status],
      ] as const) {
        const reply = await asService().ask(method, url)
        assert.deepEqual(
          [reply.status, reply.why],
          [404, 'Cannot find this export: it has ended or expired, or another client has started it'],
        )
      }
      const forged = await asService().ask('GET', `${file.slice(0, -2)}xx`)
      assert.equal(forged.status, 404)
    })

    it('shows its progress, refuses a client that asks too soon, and expires (EXPORT-6)', async () => {
      const status = await asService().start('GET $export')
      server.clock.step = 200
      const first = await asService().ask('GET', status)
      server.clock.step = 0
      assert.deepEqual([first.status, first.headers['retry-after']], [202, '1'])
      assert.match(String(first.headers['x-progress']), /^\d+% prepared$/)
      const early = await asService().ask('GET', status)
      assert.deepEqual([early.status, early.headers['retry-after']], [429, '1'])
      server.clock.ahead += 1_000
      await asService().poll(status)
      const ready = await asService().ask('GET', status)
      assert.equal((await asService().ask('GET', status)).status, 200)
      const expires = Date.parse(String(ready.headers.expires))
      assert.equal(Math.round((expires - Date.now() - server.clock.ahead) / 60_000), 60)
      server.clock.ahead += 3_600_000
      assert.equal((await asService().ask('GET', status)).status, 404)
    })

    it('is sent to a client that asks for a file of NDJSON by its media type (EXPORT-4)', async () => {
      const manifest = await asService().run('GET $export?_type=Patient')
      for (const accept of [
        'application/fhir+ndjson',
        'application/ndjson',
        'application/fhir+json',
        '*/*',
      ]) {
        const reply = await asService().ask('GET', manifest.output[0]?.url ?? '', { headers: { accept } })
        assert.deepEqual([reply.status, reply.headers['content-type']], [200, 'application/fhir+ndjson'])
      }
      const reply = await asService().ask('GET', manifest.output[0]?.url ?? '', {
        headers: { accept: 'text/csv' },
      })
      assert.equal(reply.status, 406)
    })

    it('is compressed for a client that accepts it (EXPORT-4)', async () => {
      const manifest = await asService().run('GET $export?_type=Patient')
      const { pathname, search } = new URL(manifest.output[0]?.url ?? '')
      const authorization = bearerOf(SERVICE)
      const reply = await server.fhir.app.inject({
        url: pathname + search,
        headers: { authorization, 'accept-encoding': 'gzip' },
      })
      assert.equal(reply.headers['content-encoding'], 'gzip')
      assert.match(gunzipSync(reply.rawPayload).toString(), /"id":"ann"/)
    })

    it('is in the audit trail: its start, each file with its lines and patients, its end, and refusals (EXPORT-7)', async () => {
      const status = await asService().start(
        'GET $export?_type=Observation&_typeFilter=Observation%3Fsubject=Patient/ann',
      )
      for (const { url } of (await asService().poll(status)).output) await asService().download(url)
      await asService().ask('DELETE', status)
      await server.as({ scope: 'user/*.rs', fhirUser: 'Practitioner/dr' }).ask('GET', '$export')
      const records = await findRecords(server.store, { limit: 20 })
      const of = (name: string) => records.filter(it => it.request?.startsWith(name))
      assert.equal(of('$export?')[0]?.status, 202)
      assert.equal(of('$export')[0]?.status, 403)
      const files = of('$export-file').filter(it => it.reason !== undefined)
      assert(
        files.some(it => /^Exported file with [12] lines?$/.test(it.reason ?? '') && it.patient_id === 'ann'),
      )
      assert(
        records.some(
          it => it.request?.startsWith('$export-status') && it.method === 'DELETE' && it.status === 202,
        ),
      )
      assert(!JSON.stringify(records).includes('Patient/ann%'))
    })

    it('breaks a download off if its token is revoked meanwhile (EXPORT-4)', async () => {
      const { output } = await asService().run('GET $export?_type=Patient')
      const [file] = output
      assert(file)
      server.clock.step = 6_000
      server.token.checksLeft = 1
      await assert.rejects(asService().download(file.url))
      server.token.checksLeft = 100
      await asService().download(file.url)
      server.token.checksLeft = Number.POSITIVE_INFINITY
      server.clock.step = 0
    })

    it('sends all files that a client asks for at once, and starts a limited number of exports (EXPORT-9)', async () => {
      const client = server.as({ client_id: 'greedy' })
      const { output } = await client.run('GET $export?_type=Patient')
      const { pathname, search } = new URL(output[0]?.url ?? '')
      const file = `${await server.listen()}${pathname}${search}`
      const headers = { authorization: bearerOf({ ...SERVICE, client_id: 'greedy' }), host: 'localhost:8080' }
      const ask = () => fetch(file, { headers })
      const replies = await Promise.all(Array.from({ length: 14 }, ask))
      assert(replies.every(({ status }) => status === 200))
      const texts = await Promise.all(replies.map(it => it.text()))
      assert.equal(new Set(texts).size, 1)
      for (let at = 0; at < 99; at++) await client.start('GET $export?_type=Patient')
      const reply = await client.ask('GET', '$export')
      assert.deepEqual([reply.status, reply.why], [429, 'Cannot export: the client has 100 exports already'])
    })

    it('is no entry of a Bundle, and only its status URL is deleted (EXPORT-9)', async () => {
      const client = server.as({ client_id: 'bundler' })
      const status = await client.start('GET $export?_type=Patient')
      const { output } = await client.poll(status)
      const file = output[0]?.url ?? ''
      const { search } = new URL(file)
      const entry = [`$export-file${search}`, `$export-file${search}`, '$export', 'Patient/$export'].map(
        url => ({
          request: { method: 'GET', url },
        }),
      )
      for (const type of ['batch', 'transaction']) {
        const body = { resourceType: 'Bundle', type, entry }
        assert.doesNotMatch((await client.ask('POST', '', { body })).text, /"status":"20[0-9]/)
      }
      for (const url of ['$export', file]) assert.equal((await client.ask('DELETE', url)).status, 404)
      for (let times = 0; times < 3; times++) assert.equal((await client.ask('GET', file)).status, 200)
    })

    it('takes no more parameters in a body than in a query, and filters only as many as one search has (EXPORT-9)', async () => {
      const many = (count: number, text: string) => Array.from({ length: count }, () => text)
      const filter = `Observation?code=${many(60, 'x').join(',')}`
      for (const parameter of [
        many(2_000, 'x').map(name => ({ name, valueString: '' })),
        [{ name: '_elements', valueString: many(2_000, 'id').join(',') }],
        many(40, filter).map(valueString => ({ name: '_typeFilter', valueString })),
        many(1_001, 'Patient/ann').map(reference => ({ name: 'patient', valueReference: { reference } })),
      ]) {
        const headers = { prefer: 'handling=lenient' }
        const body = { resourceType: 'Parameters', parameter }
        const reply = await asService().ask('POST', 'Patient/$export', { headers, body })
        assert.equal(reply.status, 400)
        assert.match(reply.why ?? '', /more than/)
      }
    })

    it('is prepared by one request at a time, however many ask for its status (EXPORT-6)', async () => {
      const status = await asService().start('GET $export')
      const replies = await Promise.all([1, 2, 3, 4].map(() => asService().ask('GET', status)))
      assert.deepEqual(replies.map(it => it.status === 429).sort(), [false, true, true, true])
      server.clock.ahead += 1_000
      await asService().poll(status)
    })

    if (isEmbedded)
      it('lets a limited number of downloads wait, which look for the export when it is their turn (EXPORT-9)', async t => {
        const client = server.as({ client_id: 'patient' })
        const status = await client.start('GET $export?_type=Patient')
        const { output } = await client.poll(status)
        const { promise: opened, resolve: open } = Promise.withResolvers<void>()
        t.mock.method(SqliteRows.prototype, 'read', async function* () {
          await opened
          yield []
        })
        const ask = () => client.ask('GET', output[0]?.url ?? '')
        const asked = Array.from({ length: EXPORT_DOWNLOADS + EXPORT_DOWNLOADS_WAITING }, ask)
        const { status: code, headers, why } = await ask()
        assert.deepEqual(
          [code, headers['retry-after'], why],
          [429, '60', 'Cannot send the file: the client downloads 2 files already'],
        )
        await client.ask('DELETE', status)
        open()
        const codes = (await Promise.all(asked)).map(it => it.status)
        assert.deepEqual(
          [codes.filter(it => it === 200).length, codes.filter(it => it === 404).length],
          [EXPORT_DOWNLOADS, EXPORT_DOWNLOADS_WAITING],
        )
      })

    if (isEmbedded)
      it('is no longer read when its client has left, even if no line is for it (EXPORT-9)', async t => {
        const { output } = await asService().run('GET $export?_type=Patient')
        let steps = 0
        t.mock.method(SqliteRows.prototype, 'read', async function* () {
          for (;;) {
            steps++
            await setTimeout(1)
            yield []
          }
        })
        const leave = new AbortController()
        const { pathname, search } = new URL(output[0]?.url ?? '')
        const reply = fetch(`${await server.listen()}${pathname}${search}`, {
          headers: { authorization: bearerOf(SERVICE), host: 'localhost:8080' },
          signal: leave.signal,
        })
        while (steps < 10) await setTimeout(1)
        leave.abort()
        await assert.rejects(reply)
        let before = 0
        for (let round = 0; round < 50 && before < steps; round++) {
          before = steps
          await setTimeout(100)
        }
        assert.equal(steps, before)
      })

    it('is in the CapabilityStatement (EXPORT-8)', async () => {
      const { body } = await server.fhir.ask('GET /metadata', ADMIN)
      assert.match(JSON.stringify(body.instantiates), /uv\/bulkdata\/CapabilityStatement\/bulk-data/)
      assert.match(JSON.stringify(body), /OperationDefinition\/group-export/)
      assert.match(JSON.stringify(body), /OperationDefinition\/patient-export/)
    })

    if (isEmbedded)
      it('has the data as they were at its start, and the deletions since another one (EXPORT-4)', async () => {
        const put = (resource: { readonly resourceType: string; readonly id: string }) =>
          server.fhir.ask(`PUT /${resource.resourceType}/${resource.id}`, ADMIN, resource)
        const basic = (id: string, text: string) => ({ resourceType: 'Basic', id, code: { text } })
        for (const id of ['b1', 'b2', 'b3']) await put(basic(id, 'old'))
        const first = await asService().run('GET $export?_type=Basic')
        server.clock.ahead += 10
        await put(basic('b1', 'new'))
        await put(basic('b1', 'newer'))
        await put(basic('b4', 'new'))
        await server.fhir.ask('DELETE /Basic/b2', ADMIN)
        const texts = async (manifest: typeof first) => {
          const lines = await Promise.all(manifest.output.map(({ url }) => asService().download(url)))
          return lines
            .flat()
            .map(it => `${it.id} ${(it.code as { text: string }).text}`)
            .sort()
        }
        assert.deepEqual(await texts(first), ['b1 old', 'b2 old', 'b3 old'])
        assert.deepEqual(
          first.output.map(({ count }) => count),
          [2, 1],
        )
        const later = await asService().run(`GET $export?_type=Basic&_since=${first.transactionTime}`)
        assert.deepEqual(
          (await texts(later)).filter(it => !it.endsWith('old')),
          ['b1 newer', 'b4 new'],
        )
        const [deleted] = await asService().download(later.deleted[0]?.url ?? '')
        assert.deepEqual(deleted?.entry, [{ request: { method: 'DELETE', url: 'Basic/b2' } }])
        const until = await asService().run(`GET $export?_type=Basic&_until=${first.transactionTime}`)
        assert.deepEqual(
          (await texts(until)).filter(it => it.includes('new')),
          [],
        )
      })
  })
}

describe('two instances of the embedded FHIR server', () => {
  it('serve each other’s exports, also after a download that broke off with the first one (EXPORT-6)', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-export-'))
    const store = await openSqliteStore(`sqlite:${join(folder, 'store.db')}`)
    const start = (resources: readonly Resource[]) =>
      startGuardedFhir(resources, { operations: exportOperations }, (guard, baseUrl) =>
        fhirServer({
          baseUrl,
          guard,
          dataFile: join(folder, 'fhir.db'),
          smartConfiguration: {},
          exports: { store, sealer: createSealer('secret'), lifetimeMs: 60_000, fileResources: 1_000 },
        }),
      )
    const long = { text: 'x'.repeat(20_000) }
    const many = Array.from({ length: 100 }, (_, at) => ({
      resourceType: 'Basic',
      id: `b${at}`,
      code: long,
    }))
    const first = await start(many)
    const second = await start([])
    try {
      const client = createBulkClient(first.app, SERVICE, () => undefined)
      const status = await client.start('GET $export?_type=Basic')
      const [file] = (await client.poll(status)).output
      const { pathname, search } = new URL(file?.url ?? '')
      await first.app.listen({ port: 0, host: '127.0.0.1' })
      const address = first.app.server.address()
      const port = typeof address === 'object' && address ? address.port : 0
      const reply = await fetch(`http://127.0.0.1:${port}${pathname}${search}`, {
        headers: { authorization: bearerOf(SERVICE) },
      })
      await reply.body?.getReader().cancel()
      await first.close()
      const other = createBulkClient(second.app, SERVICE, () => undefined)
      assert.equal((await other.download(file?.url ?? '')).length, 100)
      assert.equal((await other.poll(status)).output.length, 1)
    } finally {
      await second.close()
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
