import type { Sealer, Store } from '../store/index.ts'
import { registerOwnClient } from './client/own-client.ts'
import { seedClinician } from './clinician/seed.ts'
import type { AuthSettings } from './context.ts'
import { createKeyRing } from './keys/key-ring.ts'
import { makeFirstSigningKey } from './keys/signing-key.ts'

export interface InitializeOptions {
  readonly settings: AuthSettings
  readonly store: Store
  readonly sealer: Sealer
  /** The Practitioner of the test clinician. */
  readonly practitionerId?: string
  readonly clock?: () => number
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
}: InitializeOptions): Promise<Initialized> {
  await makeFirstSigningKey(store, sealer, clock())
  // Fails if the key was sealed with another secret.
  await createKeyRing({ store, sealer, clock, publishedForMs: 0 }).getSigningKey()
  await registerOwnClient(store, settings, clock())
  const seeded = await seedClinician(store, settings.seedClinicianPassword, practitionerId)
  return { seeded }
}
