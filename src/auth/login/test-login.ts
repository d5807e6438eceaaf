import { isPasswordOf } from '../clinician/password.ts'
import { TEST_CLINICIAN } from '../clinician/seed.ts'
import type { AuthContext } from '../context.ts'

/** The documented default password on loopback. */
const SHOWN_PASSWORD = 'sallyport'

export interface TestLogin {
  readonly username: string
  readonly password: string
}

/**
 * The test login for the login page: only on loopback with sample patients, and only while the default password is
 * correct. The result is cached by password hash.
 */
export function createTestLoginReader({
  settings,
  store,
}: AuthContext): () => Promise<TestLogin | undefined> {
  const shown = settings.onLoopback && settings.fhir.upstreamUrl === undefined
  let known: { readonly hash: string; readonly right: boolean } | undefined
  return async () => {
    if (!shown) return undefined
    const clinician = await store.db
      .selectFrom('clinician')
      .select(['password_hash', 'disabled'])
      .where('username', '=', TEST_CLINICIAN.username)
      .executeTakeFirst()
    if (!clinician || clinician.disabled) return undefined
    const hash = clinician.password_hash
    if (known?.hash !== hash) known = { hash, right: await isPasswordOf(hash, SHOWN_PASSWORD) }
    return known.right ? { username: TEST_CLINICIAN.username, password: SHOWN_PASSWORD } : undefined
  }
}
