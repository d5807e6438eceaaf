import type { KeptRecord } from '../../../../audit/index.ts'
import type { Store } from '../../../../store/index.ts'
import { formatFhirUser } from '../../../base/user.ts'
import { findKnownAccounts } from '../../../users/known.ts'

/**
 * An access with the person who had it. A person is the same in all requests, so there is no FHIR user of the request: an app
 * that did not ask for it has none.
 */
export interface AccessRecord extends Omit<KeptRecord, 'fhir_user'> {
  /** The FHIR user of the account: `Practitioner/1`. Null for a program, and if nothing says who it is. */
  readonly person: string | null
}

/** Finds the persons by their accounts. Whoever has none here, because another server issued the token, by any of the requests. */
export async function identifyPeople(
  { db }: Pick<Store, 'db'>,
  records: readonly KeptRecord[],
): Promise<readonly AccessRecord[]> {
  const accounts = await findKnownAccounts(
    db,
    records.map(({ subject }) => subject),
  )
  const claimed = new Map(
    records.flatMap(({ subject, fhir_user }) => (fhir_user === null ? [] : [[subject, fhir_user]])),
  )
  return records.map(({ fhir_user, ...record }) => {
    const { subject } = record
    if (subject === null) return { ...record, person: fhir_user }
    const own = formatFhirUser(accounts.get(subject)?.fhir_user_id ?? '')
    return { ...record, person: own || claimed.get(subject) || null }
  })
}
