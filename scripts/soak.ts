/**
 * `npm run soak [requests]`: a million requests, in this process, to the embedded FHIR server with the real interceptor:
 * reads, searches, writes and refused requests with valid, invalid and new tokens. Fails when the heap keeps growing.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { InjectOptions } from 'fastify'
import { fhirServer } from '../src/backends/sqlite/index.ts'
import { createInterceptor } from '../src/interceptor/index.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from '../src/interceptor/testing/test-issuer.ts'

const REQUESTS = Number(process.argv[2] ?? 1_000_000)
const SAMPLES = 20
/** How much caches may grow after the first quarter, in bytes. */
const ALLOWANCE = 12 * 1024 * 1024

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const auth = new TestIssuer()
const guard = createInterceptor({
  authUrl,
  fhirBaseUrl,
  fetch: auth.fetch,
  clock: auth.clock,
  contexts: ['patient', 'user', 'system'],
})
const app = await fhirServer({ baseUrl: fhirBaseUrl, dataFile: ':memory:', guard, smartConfiguration: {} })
const admin = auth.bearer({ scope: 'system/*.cruds' })
const tokens = Array.from({ length: 40 }, (_, at) =>
  auth.bearer({ scope: 'patient/*.cruds', patient: at % 2 ? 'ann' : 'bob', jti: `${at}` }),
)

const condition = (of: string, id: string) => ({
  resourceType: 'Condition',
  id,
  subject: { reference: `Patient/${of}` },
})

function put(
  resource: { readonly resourceType: string; readonly id: string },
  authorization: string,
): InjectOptions {
  return {
    method: 'PUT',
    url: `/fhir/${resource.resourceType}/${resource.id}`,
    headers: { authorization, 'content-type': 'application/fhir+json' },
    payload: JSON.stringify(resource),
  }
}

for (const id of ['ann', 'bob']) {
  await app.inject(put({ resourceType: 'Patient', id }, admin))
  for (let at = 0; at < 20; at++) await app.inject(put(condition(id, `${id}-${at}`), admin))
}

const URLS = [
  '/fhir/Patient/ann',
  '/fhir/Condition/bob-3',
  '/fhir/Condition?patient=ann&_count=5',
  '/fhir/Condition?_include=Condition:subject&_count=3',
  '/fhir/Observation?_summary=count',
  '/fhir/Condition/../Patient/bob',
  '/fhir/Patient/ann/$everything?_count=5',
  '/fhir/metadata',
]

/** The n-th request. Every thousandth has a new token or an invalid one. */
function createRequest(at: number): InjectOptions {
  const authorization = tokens[at % tokens.length] ?? admin
  if (at % 1000 === 0)
    return { url: '/fhir/Patient/ann', headers: { authorization: auth.bearer({ jti: `new-${at}` }) } }
  if (at % 500 === 0) return { url: '/fhir/Patient/ann', headers: { authorization: `Bearer junk-${at}` } }
  // Only writes that are refused: accepted ones store versions, which grow the database.
  if (at % 100 === 0) return put(condition('carl', 'carl-1'), authorization)
  return { url: URLS[at % URLS.length] ?? '/fhir/metadata', headers: { authorization } }
}

function heap(): number {
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

const samples: number[] = []
const began = performance.now()
for (let at = 1; at <= REQUESTS; at++) {
  const { statusCode } = await app.inject(createRequest(at))
  if (statusCode >= 500) throw new Error(`Cannot go on: request ${at} was answered with ${statusCode}`)
  if (at % Math.ceil(REQUESTS / SAMPLES) !== 0) continue
  samples.push(heap())
  const perSecond = at / ((performance.now() - began) / 1000)
  process.stdout.write(
    `${String(at).padStart(8)} requests  ${(samples.at(-1) ?? 0).toFixed(0).padStart(10)} bytes  ${perSecond.toFixed(0)}/s\n`,
  )
}
await app.close()
guard.close()
const settled = samples[Math.floor(samples.length / 4)] ?? 0
const growth = Math.max(...samples.slice(-3)) - settled
process.stdout.write(`Grew by ${(growth / 1024 / 1024).toFixed(1)} MB after the first quarter\n`)
process.exitCode = growth > ALLOWANCE ? 1 : 0
