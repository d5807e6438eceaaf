import type { Settings } from '../../../config/index.ts'
import { isFailure } from '../../../core/index.ts'
import type { Sealer, Store } from '../../../store/index.ts'
import {
  createUserLookup,
  type FhirReadResult,
  type LookupContext,
  type LookupType,
  type ReaderCaller,
} from '../../base/fhir-reader.ts'
import { issueLookupToken } from '../../oauth/fhir-tokens.ts'
import { createKeyRing } from '../../oauth/keys/key-ring.ts'
import { type Admin, describeCaller } from '../base/action.ts'
import type { UserDescription } from './users.ts'

/** The resources of a user: whoever they are, if the account opens records, and the RelatedPersons as which they act for patients. */
export function listFhirUsers({
  fhirUser,
  relatedPersons,
}: Pick<UserDescription, 'fhirUser' | 'relatedPersons'>): readonly string[] {
  return [...new Set([fhirUser, ...relatedPersons.map(id => `RelatedPerson/${id}`)])].filter(Boolean)
}

/** What the FHIR server says about a resource of a user, with the server's own access. */
export interface FhirUserRead {
  readonly reference: string
  readonly result: FhirReadResult
}

export function readFhirUsers(
  context: LookupContext,
  admin: Pick<Admin, 'actor' | 'address'>,
  references: readonly string[],
): Promise<readonly FhirUserRead[]> {
  return Promise.all(
    references.map(async reference => {
      const [type, id = ''] = reference.split('/')
      const read = await createUserLookup(context, type as LookupType, describeCaller(admin, 'account'))
      return { reference, result: await read.resource(type ?? '', id) }
    }),
  )
}

/** The resources that the FHIR server does not have. Undefined if it does not respond. */
export async function findUnknown(
  context: LookupContext,
  admin: Pick<Admin, 'actor' | 'address'>,
  references: readonly string[],
): Promise<readonly string[] | undefined> {
  return listUnknown(await readFhirUsers(context, admin, references))
}

export function listUnknown(reads: readonly FhirUserRead[]): readonly string[] | undefined {
  if (reads.some(({ result }) => isFailure(result))) return undefined
  return reads.filter(({ result }) => result.kind === 'absent').map(({ reference }) => reference)
}

/** Requests of a command to the FHIR server. */
export function makeLookupContext(options: {
  readonly settings: Settings
  readonly store: Store
  readonly sealer: Sealer
  readonly fetch?: typeof globalThis.fetch | undefined
}): LookupContext {
  const { settings, store, sealer, fetch = globalThis.fetch } = options
  const clock = Date.now
  const keys = createKeyRing({ store, sealer, clock, publishedForMs: 0 })
  const forLookup = (type: LookupType, caller: ReaderCaller) =>
    issueLookupToken({ settings, keys, clock }, type, caller)
  return { settings, fetch, fhirTokens: { forLookup } }
}
