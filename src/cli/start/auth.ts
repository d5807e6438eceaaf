import type { FastifyInstance } from 'fastify'
import type { Keeping, Parts } from './parts.ts'
import { createReportingFetch } from './relay-configuration.ts'

export interface OpenedAuth {
  readonly app: FastifyInstance
  /** Computed while the servers bind: comparing a bcrypt hash takes time. */
  readonly testLogin: Promise<TestLogin | undefined>
}

/** Present if the test clinician still has the password of the settings. */
export interface TestLogin {
  readonly username: string
  readonly password: string
  readonly seeded: boolean
}

export async function openAuth({ settings, logger, tls }: Parts, keeping: Keeping): Promise<OpenedAuth> {
  const { createAuthServer, initialize } = await import('../../auth/index.ts')
  const { seeded } = await initialize({ settings, ...keeping })
  const app = await createAuthServer({
    settings,
    ...keeping,
    logger,
    fetch: createReportingFetch(fetch, logger),
    ...(tls && { tls }),
  })
  return { app, testLogin: findTestLogin(keeping, settings.seedClinicianPassword, seeded) }
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
