import type { Settings } from '../../../config/index.ts'
import { isFailure, shortenList } from '../../../core/index.ts'
import type { Sealer, Store } from '../../../store/index.ts'
import {
  createUserLookup,
  type FhirReadResult,
  type LookupContext,
  type LookupType,
  type ReaderCaller,
} from '../../base/fhir-reader.ts'
import { formatFhirUser } from '../../base/user.ts'
import { issueLookupToken } from '../../oauth/fhir-tokens.ts'
import { createKeyRing } from '../../oauth/keys/key-ring.ts'
import { type Admin, describeCaller } from '../base/action.ts'
import type { Attention } from '../subject/attention.ts'
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

/** Accounts that are compared with the FHIR server at most, and in one search. */
export const COMPARED = 300
const COMPARED_AT_ONCE = 100

/** Accounts whose resource the FHIR server does not have. */
export const FHIR_USER_ATTENTION: Attention = {
  code: 'users-unknown',
  path: '/clinicians',
  action: 'See users',
  async find({ context }) {
    const rows = await context.store.db
      .selectFrom('clinician')
      .select(['username', 'fhir_user_id'])
      .where('disabled', '=', false)
      .where('fhir_user_id', '!=', '')
      .$if(!context.rules.onLoopback, query => query.where('for_loopback', '=', false))
      .orderBy('username')
      .limit(COMPARED)
      .execute()
    const users = rows.map(row => {
      const [type = '', id = ''] = formatFhirUser(row.fhir_user_id).split('/')
      return { username: row.username, type: type as LookupType, id }
    })
    const unknown = await Promise.all(
      [...Map.groupBy(users, ({ type }) => type)].map(async ([type, ofType]) => {
        const known = await findKnownIds(context, type, [...new Set(ofType.map(({ id }) => id))])
        return known ? ofType.filter(({ id }) => !known.has(id)).map(({ username }) => username) : []
      }),
    )
    const names = unknown.flat().toSorted()
    const [first] = names
    if (first === undefined) return undefined
    const who = names.length === 1 ? `account ${first}` : `accounts ${shortenList(names)}`
    return {
      text: `The FHIR server has no resource for the FHIR user of the ${who}.`,
      path: `/clinicians?${new URLSearchParams({ search: first })}`,
    }
  },
}

/** Undefined if the FHIR server does not say. */
async function findKnownIds(
  context: LookupContext,
  type: LookupType,
  ids: readonly string[],
): Promise<ReadonlySet<string> | undefined> {
  const read = await createUserLookup(context, type, { purpose: 'users-of-accounts' })
  const known = new Set<string>()
  for (let at = 0; at < ids.length; at += COMPARED_AT_ONCE) {
    const some = ids.slice(at, at + COMPARED_AT_ONCE)
    const found = await read(`${type}?_id=${some.join(',')}&_count=${some.length}&_elements=id`)
    if (isFailure(found) || found.kind === 'absent') return undefined
    const entries: readonly { readonly resource?: { readonly id?: string } }[] = Array.isArray(
      found.resource.entry,
    )
      ? found.resource.entry
      : []
    for (const { resource } of entries) if (resource?.id !== undefined) known.add(resource.id)
  }
  return known
}
