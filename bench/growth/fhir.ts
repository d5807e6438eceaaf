/**
 * Requests to the embedded FHIR server by every kind of access filter. The panels have 10 patients whatever the size of
 * the data set, or half of all patients.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { createAuthenticator, type Fhir, startFhir } from '../../src/backends/sqlite/testing/fhir.ts'
import { CALLERS, choosePatient, GROWING, READS } from '../../src/backends/sqlite/testing/query-shapes.ts'
import { fill } from './fhir/fill.ts'
import type { Request, Subject } from './measure.ts'

export const subject: Subject = {
  // 60 and 6,000 patients.
  size: 300_000,
  limit: 2,
  async open(size, folder) {
    const dataFile = join(folder, `fhir-${size}.db`)
    fill(dataFile, size)
    const fhir = await startFhir({ dataFile, guard: createAuthenticator(CALLERS) })
    return { requests: listRequests(fhir), close: () => fhir.close() }
  },
}

/**
 * The ratios of these requests are higher, because the small data set has so few matches that a search starts with them,
 * fewer patients than a step sorts, or fewer versions than are counted.
 */
const FEWER = /family=smith|(date|value-quantity)=(ge|le)|_sort=family,given|_history/

/** The page of a name that every tenth patient has, sorted as in the portal. Without a policy its total is counted too. */
const SORTED_NAMES = 'Patient?name=smith&_sort=family,given&_count=5'
const OF_POLICY = /^(few|many|named)\b/
const SORTED_LIMITS = { ofPolicy: 1.5, ofOthers: 10 } as const

function listRequests(fhir: Fhir): Readonly<Record<string, Request>> {
  const requests = Object.keys(CALLERS).flatMap(caller => [
    ...READS.map(path => {
      const request = createRequest(fhir, caller, path)
      return [`${caller}: ${path}`, FEWER.test(path) ? { ...request, limit: 3 } : request] as const
    }),
    ...GROWING.map(path => {
      const request = createRequest(fhir, caller, path, path !== SORTED_NAMES)
      const most = OF_POLICY.test(caller) ? SORTED_LIMITS.ofPolicy : SORTED_LIMITS.ofOthers
      const growth = path === SORTED_NAMES ? { limit: most } : { isLinear: true }
      return [`${caller}: ${path}`, { ...request, ...growth }] as const
    }),
  ])
  return Object.fromEntries(requests)
}

function createRequest(fhir: Fhir, caller: string, path: string, isLinear = false): Request {
  const line = `GET ${path.replaceAll('PATIENT', choosePatient(caller))}`
  return { send: () => send(fhir.as(caller), line, isLinear) }
}

/** A search whose work grows with the data is refused where it is too much for one request. */
async function send(fhir: Fhir, line: string, mayBeRefused: boolean): Promise<void> {
  const { status, text } = await fhir(line)
  const isRefused = mayBeRefused && status === 400 && text.includes('"too-costly"')
  assert.ok(status === 200 || isRefused, text)
}
