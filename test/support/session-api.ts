import { after, before, beforeEach } from 'node:test'
import type { FastifyInstance } from 'fastify'
import type { Store } from '../../src/store/index.ts'
import type { AppBrowser } from './app-browser.ts'
import { type ScriptedEhr, startScriptedEhr } from './scripted-ehr.ts'
import { launchBrowser, sessionApp, temporaryStore, testClock } from './session-app.ts'

const SUBJECT = { reference: 'Patient/juniper' }
export const PATIENT = {
  resourceType: 'Patient',
  id: 'juniper',
  name: [{ family: 'Juniper', given: ['Alba', null] }],
  birthDate: '1958-03-14',
  gender: 'female',
  active: true,
}

export function condition(id: string, recordedDate?: string, status = 'active') {
  return {
    resourceType: 'Condition',
    id,
    subject: SUBJECT,
    code: {
      coding: [{ system: 'http://snomed.info/sct', code: '49436004', display: 'Atrial fibrillation' }],
    },
    clinicalStatus: { coding: [{ code: status }] },
    ...(recordedDate === undefined ? {} : { recordedDate }),
  }
}

export function medication(id: string, status = 'active', authoredOn = '2026-01-01') {
  return { resourceType: 'MedicationRequest', id, subject: SUBJECT, status, authoredOn }
}

export function vital(id: string, effectiveDateTime: string) {
  return { resourceType: 'Observation', id, subject: SUBJECT, status: 'final', effectiveDateTime }
}

/** The setup of the tests of `/api/**`, with a new launch for each test. */
export interface SessionApi {
  readonly clock: () => number
  readonly ehr: ScriptedEhr
  readonly store: Store
  readonly app: FastifyInstance
  readonly browser: AppBrowser
  /** A browser whose launch was granted this scope. */
  withScope(scope: string): Promise<AppBrowser>
  /** The last request that the FHIR server has seen. */
  lastSearch(): URL
}

/** Sets the app and a scripted EHR with records up for the tests of a `describe`. Use what it gives inside of tests. */
export function useSessionApi(): SessionApi {
  const clock = testClock()
  const made: { store?: Store; ehr?: ScriptedEhr; app?: FastifyInstance; browser?: AppBrowser } = {}
  const api: SessionApi = {
    clock,
    get ehr() {
      return there(made.ehr)
    },
    get store() {
      return there(made.store)
    },
    get app() {
      return there(made.app)
    },
    get browser() {
      return there(made.browser)
    },
    withScope: async scope => {
      const identity = scope.split(' ').includes('openid') ? {} : { id_token: undefined }
      api.ehr.script.token = { scope, ...identity }
      return launchBrowser(api.app, api.ehr.fhirBaseUrl)
    },
    lastSearch: () => new URL(api.ehr.seen.at(-1)?.path ?? '', api.ehr.issuer),
  }
  before(async () => {
    made.store = await temporaryStore()
    made.ehr = await startScriptedEhr()
    made.app = await sessionApp(made.store, [made.ehr.fhirBaseUrl], { clock })
  })
  beforeEach(async () => {
    api.ehr.reset()
    api.ehr.records.push(...records())
    made.browser = await launchBrowser(api.app, api.ehr.fhirBaseUrl)
  })
  after(async () => {
    await made.ehr?.close()
    await made.store?.close()
  })
  return api
}

function there<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('Cannot use it yet: only inside of tests')
  return value
}

function records() {
  return [
    PATIENT,
    condition('older', '2019-04-01'),
    condition('undated'),
    condition('newest', '2026-10-02'),
    condition('healed', '2026-11-01', 'resolved'),
    medication('m1'),
    medication('m2', 'stopped'),
    medication('m3', 'active', '2026-06-01'),
    vital('v1', '2026-01-01T10:00:00Z'),
    vital('v2', '2026-03-01T10:00:00Z'),
  ]
}

/** The ids in a Bundle, in order. */
export function readIds(body: { entry: { resource: { id: string } }[] }): readonly string[] {
  return body.entry.map(({ resource }) => resource.id)
}

export const API_PATHS = [
  '/api/session',
  '/api/me',
  '/api/patient',
  '/api/conditions',
  '/api/medications',
  '/api/summary',
  '/api/vitals',
] as const
