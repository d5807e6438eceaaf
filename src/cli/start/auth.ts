import type { FastifyInstance } from 'fastify'
import type { Keeping, Parts } from './parts.ts'
import { createReportingFetch } from './relay-configuration.ts'
import { readUserFilter } from './trusted-issuers.ts'

/** Present if the test clinician still has the password of the settings. */
export interface TestLogin {
  readonly username: string
  readonly password: string
  readonly seeded: boolean
}

export interface PreparedAuth {
  /** Computed while the servers bind: comparing a bcrypt hash takes time. */
  readonly testLogin: Promise<TestLogin | undefined>
}

/** Creates the first keys, client and clinician. Call it in one process, before `openAuth`. */
export async function prepareAuth({ settings }: Parts, keeping: Keeping): Promise<PreparedAuth> {
  const { initialize } = await import('../../auth/index.ts')
  const { seeded } = await initialize({ settings, ...keeping })
  return { testLogin: findTestLogin(keeping, settings.seedClinicianPassword, seeded) }
}

export async function openAuth(
  { settings, logger, files: { tls } }: Parts,
  keeping: Keeping,
): Promise<FastifyInstance> {
  const { createAuthServer } = await import('../../auth/index.ts')
  return createAuthServer({
    settings,
    ...keeping,
    logger,
    userFilter: readUserFilter(settings),
    fetch: createReportingFetch(fetch, logger),
    ...(tls && { tls }),
  })
}

async function findTestLogin(
  { store }: Keeping,
  password: string,
  seeded: boolean,
): Promise<TestLogin | undefined> {
  const { isPasswordOf, TEST_CLINICIAN } = await import('../../auth/index.ts')
  const { username } = TEST_CLINICIAN
  if (seeded) return { username, password, seeded }
  const row = await store.db
    .selectFrom('clinician')
    .select('password_hash')
    .where('username', '=', username)
    .where('disabled', '=', false)
    .executeTakeFirst()
  return row && (await isPasswordOf(row.password_hash, password)) ? { username, password, seeded } : undefined
}
