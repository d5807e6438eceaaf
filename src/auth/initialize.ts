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
  /** The Practitioner of the sample data whom the test clinician is. */
  readonly practitionerId?: string
  readonly clock?: () => number
}

/** What the start did, for whoever prints the test login. */
export interface Initialized {
  readonly seeded: boolean
}

/** A Practitioner that the sample data always has. */
const SAMPLE_PRACTITIONER = 'practitioner-1'

/** The first start (contract 3): signing key, the app's own client, test clinician. Later starts change nothing else. */
export async function initialize({
  settings,
  store,
  sealer,
  practitionerId = SAMPLE_PRACTITIONER,
  clock = Date.now,
}: InitializeOptions): Promise<Initialized> {
  await makeFirstSigningKey(store, sealer, clock())
  // Another secret than the one that sealed the key stops the start, and is named.
  await createKeyRing({ store, sealer, clock, publishedForMs: 0 }).signing()
  await registerOwnClient(store, settings, clock())
  const seeded = await seedClinician(store, settings.seedClinicianPassword, practitionerId)
  return { seeded }
}
