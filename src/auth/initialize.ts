import type { Settings } from '../config/index.ts'
import { REMOVED, type Sealer, type Store } from '../store/index.ts'
import { makeAppKeySetUrl } from './oauth/clients/key-sets.ts'
import { storeOrigins } from './oauth/clients/origins.ts'
import { createKeyRing } from './oauth/keys/key-ring.ts'
import { makeFirstSigningKey } from './oauth/keys/signing-key.ts'
import { seedClinician } from './users/accounts.ts'

export interface InitializeOptions {
  readonly settings: Settings
  readonly store: Store
  readonly sealer: Sealer
  /** The Practitioner of the test clinician. */
  readonly practitionerId?: string
  readonly clock?: () => number
  /** The bcrypt cost of the password of the test clinician. */
  readonly passwordCost?: number
  /** Whether the password of the test clinician is random and printed: it is replaced at the first sign-in. */
  readonly isPasswordRandom?: boolean
}

export interface Initialized {
  /** Whether this start created the test clinician. */
  readonly seeded: boolean
}

/** The sample data always has this Practitioner. */
const SAMPLE_PRACTITIONER = 'practitioner-1'

/** Creates the signing key, the demo app's client and the test clinician at the first start. */
export async function initialize({
  settings,
  store,
  sealer,
  practitionerId = SAMPLE_PRACTITIONER,
  clock = Date.now,
  passwordCost,
  isPasswordRandom = false,
}: InitializeOptions): Promise<Initialized> {
  await makeFirstSigningKey(store, sealer, clock())
  // Fails if the key was sealed with another secret.
  await createKeyRing({ store, sealer, clock, publishedForMs: 0 }).getSigningKey()
  await registerOwnClient(store, settings, clock())
  const { seedClinicianPassword: password, onLoopback: isForLoopback } = settings
  const clinician = { password, practitionerId, passwordCost, isForLoopback, now: clock() }
  return { seeded: await seedClinician(store, { ...clinician, mustChangePassword: isPasswordRandom }) }
}

/** Registers the demo app's client, and updates its URLs and scope at every start, so that changed settings take effect. */
async function registerOwnClient({ db }: Store, settings: Settings, now: number): Promise<void> {
  const configured = {
    redirect_uris: JSON.stringify([`${settings.appUrl}/callback`]),
    post_logout_redirect_uris: JSON.stringify([`${settings.appUrl}/logout`]),
    auth_method: settings.app.authMethod,
    jwks_url: settings.app.authMethod === 'none' ? null : makeAppKeySetUrl(settings),
    launch_url: settings.smartClientLaunchUrl,
    scope: settings.app.scope,
  }
  const row = {
    client_id: settings.app.clientId,
    name: 'Demo app',
    description: null,
    logo_url: null,
    secret_hash: null,
    jwks: null,
    first_party: true,
    created_at: now,
    ...configured,
  }
  await db.transaction().execute(async trx => {
    // Removed, but not yet deleted. Its former grants have ended.
    await trx
      .updateTable('client')
      .set({ disabled: false, expires_at: null })
      .where('client_id', '=', row.client_id)
      .where('expires_at', '=', REMOVED)
      .execute()
    await trx
      .insertInto('client')
      .values(row)
      .onConflict(conflict => conflict.column('client_id').doUpdateSet(configured))
      .execute()
    await storeOrigins(trx, row.client_id)
  })
}
