import type { FastifyInstance } from 'fastify'
import type { AuthServerOptions } from '../../auth/index.ts'
import type { Settings } from '../../config/index.ts'
import { HOW } from '../../core/index.ts'
import type { EnforcementPolicy } from '../../smart/index.ts'
import { findOfferedOperations } from './files.ts'
import { createLiveFilter } from './live.ts'
import type { Parts, PrintLine, Storage } from './parts.ts'

/** Present if the test clinician still has the password of the settings. */
export interface TestClinician {
  readonly username: string
  readonly password: string
  readonly seeded: boolean
  /** The accounts of sample patients and their relatives with the same password. */
  readonly samples: readonly { readonly kind: string; readonly username: string }[]
}

export interface PreparedAuth {
  /** Computed while the servers bind: comparing a bcrypt hash takes time. */
  readonly testLogin: Promise<TestClinician | undefined>
}

/** Creates the first keys, client and clinician. Call it in one process, before `openAuth`. */
export async function prepareAuth(
  parts: Pick<Parts, 'names' | 'settings' | 'isPasswordRandom'>,
  storage: Storage,
  printLine: PrintLine,
): Promise<PreparedAuth> {
  const { settings, isPasswordRandom = false } = parts
  const { initialize, seedSampleAccounts, describeMadeForLoopback, hasAdministrator } = await import(
    '../../auth/index.ts'
  )
  const { seeded } = await initialize({ settings, ...storage, isPasswordRandom })
  if (seeded && hasSampleAccounts(settings)) await seedSampleAccounts(storage.store)
  const unusable = await describeMadeForLoopback(storage.store, settings)
  if (unusable !== undefined) printLine(unusable)
  if (!(await hasAdministrator(storage.store)) && !settings.login.providers.some(({ admin }) => admin))
    printLine(
      `There is no administrator yet. Add one with: ${HOW} clinician add --admin --no-records --username <name> --display-name <name>`,
    )
  return { testLogin: findTestLogin(storage, parts, seeded) }
}

/** On loopback, with all patients of the catalogue. */
function hasSampleAccounts({ onLoopback, fhir }: Parts['settings']): boolean {
  return onLoopback && fhir.upstreamUrl === undefined && fhir.samplePatients >= 30
}

/** Whether the records of these accounts are there. A FHIR server elsewhere may have none. */
function hasSampleRecords({ names, settings }: Pick<Parts, 'names' | 'settings'>): boolean {
  return names.includes('fhir') && hasSampleAccounts(settings)
}

export async function openAuth(
  parts: Parts,
  storage: Storage,
  fetch: typeof globalThis.fetch,
): Promise<FastifyInstance> {
  const { settings, logger, live, controls } = parts
  const { createAuthServer } = await import('../../auth/index.ts')
  const { tls } = live.current
  const userFilter = createLiveFilter(live)
  return createAuthServer({
    settings,
    ...storage,
    logger,
    controls,
    onLoginChange: apply => live.onChange(({ login }) => apply(login)),
    userFilter,
    explainRequest: await createExplainRequest(settings, userFilter),
    hasSampleRecords: hasSampleRecords(parts),
    fetch,
    ...(tls && { tls }),
  })
}

/** Explains requests on the activity page as the command `explain` does. */
export async function createExplainRequest(
  settings: Settings,
  userFilter: EnforcementPolicy['userFilter'],
): Promise<NonNullable<AuthServerOptions['explainRequest']>> {
  const { explain } = await import('../../interceptor/index.ts')
  const { fhirBaseUrl, fhir } = settings
  const { searchPermission, scopeContexts: contexts } = fhir
  const operations = findOfferedOperations(settings)
  return question => explain({ ...question, searchPermission, contexts, userFilter, operations }, fhirBaseUrl)
}

async function findTestLogin(
  { store }: Storage,
  parts: Pick<Parts, 'names' | 'settings'>,
  seeded: boolean,
): Promise<TestClinician | undefined> {
  const { settings } = parts
  const { findTestAccounts, isPasswordOf, TEST_CLINICIAN } = await import('../../auth/index.ts')
  const { seedClinicianPassword: password } = settings
  // Whoever starts the server is told only of logins that work.
  if (!settings.login.passwords) return undefined
  const { hash, samples } = await findTestAccounts(store, settings)
  const found = {
    username: TEST_CLINICIAN.username,
    password,
    seeded,
    samples: samples.filter(({ kind }) => kind === 'Admin' || hasSampleRecords(parts)),
  }
  if (seeded) return found
  return hash !== undefined && (await isPasswordOf(hash, password)) ? found : undefined
}
