/**
 * `node bench/fhir-server.ts`: reads, searches and creates of the embedded FHIR server without access control, with access
 * control and audit, and of Medplum's router with its repository in memory, which checks and validates nothing. All have the
 * same sample patients. The goals compare the main thread's CPU time with that of reads without access control, because
 * other threads flush audit records and move them to the trail.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAuditor, createFhirAudit } from '../src/audit/index.ts'
import { fhirServer, openRepository } from '../src/backends/sqlite/index.ts'
import { createInterceptor } from '../src/interceptor/index.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from '../src/interceptor/testing/test-issuer.ts'
import { samplePatients } from '../src/sample-patients/index.ts'
import { openStore } from '../src/store/index.ts'
import { compare, compareMain } from './shared/compare.ts'
import { getVersion, type Served, serveContender, startContender } from './shared/contender.ts'
import { formatRequest } from './shared/load.ts'
import { reportServers } from './shared/report.ts'

// Few, because Medplum's repository in memory evaluates a search on every resource of the type.
const PATIENTS = 20
const resources = [...samplePatients({ count: PATIENTS, now: Date.UTC(2026, 0, 1) })]
const ids = resources.filter(it => it.resourceType === 'Patient').map(it => it.id)
const [, , role] = process.argv

const OPEN = 'Sallyport, embedded, no check'
const SCOPES = ['patient', 'user'] as const
type Scopes = (typeof SCOPES)[number]
const nameGuarded = (scopes: Scopes) => `Sallyport, embedded, guarded by ${scopes}/, audited`

const GOALS: Readonly<Record<Scopes, number>> = { patient: 0.85, user: 0.8 }

if (role === undefined) await measure()
else if (role === 'medplum') serveContender(await serveMedplum())
else serveContender(await serveEmbedded(role === 'open' ? undefined : (role as Scopes)))

async function measure(): Promise<void> {
  const { filename } = import.meta
  const names = { patient: nameGuarded('patient'), user: nameGuarded('user') }
  const contenders = [
    await startContender(OPEN, filename, ['open']),
    await startContender(names.patient, filename, ['patient']),
    await startContender(names.user, filename, ['user']),
    await startContender(`@medplum/fhir-router ${getVersion('@medplum/fhir-router')}, in memory`, filename, [
      'medplum',
    ]),
  ]
  const requests = { read: 3_200, search: 320, create: 800 }
  const measured = await compare(contenders, { requests, connections: 64, warmRounds: 8, rounds: 15 })
  const open = measured.find(it => it.request === 'read' && it.server === OPEN)
  const findGoal = (it: (typeof measured)[number]) => {
    const scopes = it.request === 'read' ? SCOPES.find(one => names[one] === it.server) : undefined
    return open && scopes && { goal: { value: compareMain(it, open), least: GOALS[scopes] } }
  }
  await reportServers(
    'peers',
    measured.map(it => ({ ...it, ...findGoal(it), request: `FHIR server: ${it.request}` })),
  )
}

async function serveEmbedded(scopes: Scopes | undefined): Promise<Served> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const dataFile = join(folder, 'fhir.db')
  const repository = openRepository({ file: dataFile, baseUrl: fhirBaseUrl })
  repository.load(resources)
  repository.close()
  const issuer = new TestIssuer()
  const app = await fhirServer({
    baseUrl: fhirBaseUrl,
    dataFile,
    smartConfiguration: {},
    ...(scopes && (await createGuard(issuer, folder))),
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const tokens = ids.map(patient =>
    scopes === 'user'
      ? issuer.bearer({ scope: 'user/*.cruds', fhirUser: 'Practitioner/practitioner-1' })
      : issuer.bearer({ scope: 'patient/*.cruds', patient }),
  )
  return {
    port: (app.server.address() as AddressInfo).port,
    makeRequests: async (kind, count) => makeRequests('/fhir', kind, count, scopes ? tokens : []),
  }
}

async function createGuard({ fetch, clock }: TestIssuer, folder: string) {
  const store = await openStore(`sqlite:${join(folder, 'audit.db')}`)
  return {
    guard: createInterceptor({ authUrl, fhirBaseUrl, fetch, clock, contexts: SCOPES }),
    audit: createFhirAudit({ auditor: createAuditor({ store }), store, fhirBaseUrl }),
  }
}

async function serveMedplum(): Promise<Served> {
  const { startMedplum } = await import('../src/backends/upstream/testing/medplum-upstream.ts')
  const { url } = await startMedplum()
  const headers = { 'content-type': 'application/fhir+json' }
  for (const resource of resources) {
    const body = JSON.stringify(resource)
    const { status } = await fetch(`${url}/${resource.resourceType}/${resource.id}`, {
      method: 'PUT',
      headers,
      body,
    })
    if (status !== 201) throw new Error(`Cannot load the sample: ${status}`)
  }
  return {
    port: Number(new URL(url).port),
    makeRequests: async (kind, count) => makeRequests('/r4', kind, count, []),
  }
}

function makeRequests(base: string, kind: string, count: number, tokens: readonly string[]): string[] {
  return Array.from({ length: count }, (_, at) => {
    const [patient = '', authorization] = [ids[at % ids.length], tokens[at % ids.length]]
    return makeRequest(base, kind, patient, {
      host: 'localhost:8080',
      'content-type': 'application/fhir+json',
      ...(authorization !== undefined && { authorization }),
    })
  })
}

function makeRequest(base: string, kind: string, patient: string, headers: Record<string, string>): string {
  // By `subject`: `patient` takes Medplum thirty times as long.
  const search = `subject=Patient/${patient}&clinical-status=active&_sort=-recorded-date`
  if (kind === 'read') return formatRequest(`GET ${base}/Patient/${patient}`, headers)
  if (kind === 'search') return formatRequest(`GET ${base}/Condition?${search}`, headers)
  return formatRequest(`POST ${base}/Observation`, headers, makeObservation(patient))
}

function makeObservation(patient: string): string {
  const unit = { unit: 'mmHg', system: 'http://unitsofmeasure.org', code: 'mm[Hg]' }
  const make = (system: string, code: string, display: string) => ({ coding: [{ system, code, display }] })
  return JSON.stringify({
    resourceType: 'Observation',
    status: 'final',
    category: [
      make('http://terminology.hl7.org/CodeSystem/observation-category', 'vital-signs', 'Vital Signs'),
    ],
    code: make('http://loinc.org', '85354-9', 'Blood pressure panel'),
    subject: { reference: `Patient/${patient}` },
    effectiveDateTime: '2026-02-03T04:05:06Z',
    component: [
      {
        code: make('http://loinc.org', '8480-6', 'Systolic blood pressure'),
        valueQuantity: { value: 128, ...unit },
      },
      {
        code: make('http://loinc.org', '8462-4', 'Diastolic blood pressure'),
        valueQuantity: { value: 82, ...unit },
      },
    ],
  })
}
