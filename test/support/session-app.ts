import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { readSettings } from '../../src/config/index.ts'
import { type AppServerOptions, createAppServer } from '../../src/session/index.ts'
import { createSealer, type Store } from '../../src/store/index.ts'
import { createLogger } from '../../src/web/http/index.ts'
import { AppBrowser } from './app-browser.ts'
import { type ScriptedEhr, startScriptedEhr } from './scripted-ehr.ts'
import { openSqliteStore } from './sqlite-store.ts'

/** A clock that tests set. */
export interface TestClock {
  (): number
  advance(seconds: number): void
}

export function testClock(start = Date.now()): TestClock {
  let now = start
  return Object.assign(() => now, {
    advance: (seconds: number) => {
      now += seconds * 1000
    },
  })
}

/** Creates a SQLite store, which `close` removes, for tests that are not about the database. */
export async function temporaryStore(): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  const store = await openSqliteStore(`sqlite:${join(folder, 'test.db')}`)
  return {
    ...store,
    close: async () => {
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

type Changes = Partial<Omit<AppServerOptions, 'app'>> & { readonly app?: Partial<AppServerOptions['app']> }

export const APP_SCOPE =
  'launch openid fhirUser online_access patient/Patient.rs patient/Condition.rs patient/MedicationRequest.rs patient/Observation.rs'

const defaults = readSettings({}, import.meta.dirname)

/** Creates an app server for the given EHRs. */
export async function sessionApp(
  store: Store,
  issuers: readonly string[],
  { app, ...changes }: Changes = {},
): Promise<FastifyInstance> {
  return createAppServer({
    appUrl: 'http://localhost:8081',
    issuerUrl: 'http://localhost:9000',
    fhirBaseUrl: issuers[0] ?? '',
    bind: ['127.0.0.1'],
    loginIdleSeconds: 0,
    allowedHosts: [],
    developerTools: false,
    store,
    sealer: createSealer('a secret of the tests, long enough'),
    fhir: { upstreamUrl: undefined, samplePatients: 60 },
    app: { ...defaults.app, scope: APP_SCOPE, issuers, ...app },
    ...changes,
  })
}

/** Returns a browser with a completed launch. */
export async function launchBrowser(app: FastifyInstance, iss: string): Promise<AppBrowser> {
  const browser = new AppBrowser(app)
  const response = await browser.launch(iss)
  if (response.statusCode !== 302)
    throw new Error(`Cannot launch: ${response.statusCode} ${response.body.slice(0, 400)}`)
  return browser
}

/** The setup of the tests of the app server: one EHR and one store, and for each test an app with its own clock. */
export interface SessionAppSetup {
  readonly ehr: ScriptedEhr
  readonly store: Store
  readonly app: FastifyInstance
  readonly clock: TestClock
  /** The warnings of the app, as they were logged. */
  readonly log: () => readonly Readonly<Record<string, unknown>>[]
}

/** Uses a new store, or one that `open` returns and its caller closes. */
export function useSessionApp(open?: () => Promise<Store>): SessionAppSetup {
  let ehr: ScriptedEhr
  let store: Store
  let app: FastifyInstance
  let clock: TestClock
  const lines: string[] = []
  before(async () => {
    store = await (open ?? temporaryStore)()
    ehr = await startScriptedEhr()
  })
  beforeEach(async () => {
    ehr.reset()
    clock = testClock()
    lines.length = 0
    const destination = { write: (line: string) => lines.push(line) }
    const logger = createLogger({ level: 'warn', destination })
    app = await sessionApp(store, [ehr.fhirBaseUrl], { clock, logger })
  })
  after(async () => {
    await ehr?.close()
    if (!open) await store?.close()
  })
  return {
    log: () => lines.map(line => JSON.parse(line)),
    get ehr() {
      return ehr
    },
    get store() {
      return store
    },
    get app() {
      return app
    },
    get clock() {
      return clock
    },
  }
}
