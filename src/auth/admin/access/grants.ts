import { setImmediate as yieldTurn } from 'node:timers/promises'
import type { Selectable } from 'kysely'
import {
  cutPage,
  formatPosition,
  type Position,
  parsePosition,
  readAfter,
  type Schema,
  type Store,
} from '../../../store/index.ts'
import {
  type GrantRow,
  keepUsableGrants,
  revokeGrant,
  selectGrants,
  type UsableGrant,
} from '../../oauth/grants/grant.ts'
import { hasUserScope } from '../../oauth/token/token-response.ts'
import { isUsableClient } from '../../users/validity/rule.ts'
import { isProgramScope } from '../../words/program-scopes.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  failAdmin,
  type ListPage,
  type PageRequest,
  perform,
} from '../base/action.ts'

const REVOKE_GRANT: AdminOperation = { name: 'grant revoke', signIn: 'never asks' }

/** An app's access on behalf of a user, which can still be used. */
export interface GrantDescription {
  readonly id: string
  readonly clientId: string
  readonly clientName: string
  readonly userId: string
  readonly username: string
  readonly displayName: string
  readonly scope: string
  readonly patientId: string | undefined
  /** It opens every patient whom the user may see. */
  readonly opensEvery: boolean
  /** Of an agent: its tokens are for the MCP endpoint. */
  readonly isAgent: boolean
  readonly createdAt: number
  readonly lastUsedAt: number
  /** Undefined: until it is revoked. */
  readonly endsAt: number | undefined
}

/** Each list has the accepted values; undefined accepts all. */
export interface GrantFilter extends PageRequest {
  readonly clientIds?: readonly string[] | undefined
  readonly userIds?: readonly string[] | undefined
  readonly patientIds?: readonly string[] | undefined
  /** Only grants with access to every patient that the user can see. */
  readonly opensEvery?: boolean | undefined
}

/** Grants that are read at once, and how often for a page, however few of them can be used. */
const READ_AT_ONCE = 2_000
const READ_OFTEN = 5

/** Lists grants that can still be used, newest first. A page may have fewer than `limit`, and others may follow. */
export async function listGrants(
  { store, clock, rules }: Pick<Admin, 'store' | 'clock' | 'rules'>,
  { after, limit, ...filter }: GrantFilter,
): Promise<ListPage<GrantDescription>> {
  if (filter.patientIds?.length === 0) return { items: [], next: undefined }
  const items: UsableGrant[] = []
  let position = parsePosition(after)
  for (let read = 0; read < READ_OFTEN; read++) {
    const rows = await readGrants(store, filter, position)
    const wanted = rows.filter(row => isWanted(row, filter))
    items.push(...(await keepUsableGrants(store.db, rules, wanted, clock())))
    const last = rows.at(-1)
    if (items.length > limit || rows.length < READ_AT_ONCE || !last) {
      position = undefined
      break
    }
    position = toPosition(last)
    await yieldTurn()
  }
  const { shown, last } = cutPage(items, limit)
  const next = last ? toPosition(last) : position
  return { items: shown.map(toDescription), next: next && formatPosition(next) }
}

/** One value of the filter, or none, is the condition, so that an index has the grants in the order of the page. */
function readGrants(
  { db }: Store,
  { patientIds, userIds, clientIds }: Omit<GrantFilter, 'limit'>,
  position: Position | undefined,
): Promise<GrantRow[]> {
  const query = readAfter(selectGrants(db), position, ['grant.created_at', 'grant.id']).limit(READ_AT_ONCE)
  const [userId] = userIds?.length === 1 ? userIds : []
  const [clientId] = clientIds?.length === 1 ? clientIds : []
  if (patientIds) return query.where('grant.patient_id', 'in', patientIds).execute()
  if (userId !== undefined) return query.where('grant.clinician_id', '=', userId).execute()
  if (clientId !== undefined) return query.where('grant.client_id', '=', clientId).execute()
  return query.execute()
}

function isWanted(row: GrantRow, { opensEvery, userIds, clientIds }: Omit<GrantFilter, 'limit'>): boolean {
  return (
    (!opensEvery || hasUserScope(row.scope)) &&
    (userIds?.includes(row.clinician_id) ?? true) &&
    (clientIds?.includes(row.client_id) ?? true)
  )
}

function toPosition({ created_at, id }: GrantRow): Position {
  return { at: created_at, id }
}

/** The access of a program, without a user: a backend service, or a client of this server's own APIs. */
export interface ServiceDescription {
  readonly clientId: string
  readonly clientName: string
  /** The scopes that it may request without a user. */
  readonly scope: string
  /** It opens every patient. */
  readonly opensEvery: boolean
}

/** Lists the programs that can get tokens now (`client_credentials`), by id. */
export async function listServices(
  { store, clock, rules }: Pick<Admin, 'store' | 'clock' | 'rules'>,
  {
    clientIds,
    usesFhir = false,
  }: { readonly clientIds?: readonly string[] | undefined; readonly usesFhir?: boolean } = {},
): Promise<readonly ServiceDescription[]> {
  const rows = await store.db
    .selectFrom('client')
    .selectAll()
    .where('auth_method', '<>', 'none')
    .where(({ or, eb }) =>
      or(['system/', '__', 'sallyport/'].map(begin => eb('scope', 'like', `%${begin}%`))),
    )
    .$if(clientIds !== undefined, query => query.where('client_id', 'in', clientIds ?? []))
    .orderBy('client_id')
    .execute()
  return rows
    .filter(row => isUsableClient(row, rules, clock()))
    .map(toService)
    .filter(({ scope, opensEvery }) => (usesFhir ? opensEvery : scope !== ''))
}

type ServiceRow = Pick<Selectable<Schema['client']>, 'client_id' | 'name' | 'scope' | 'auth_method'>

function toService(row: ServiceRow): ServiceDescription {
  const scope = listServiceScopes(row).join(' ')
  return { clientId: row.client_id, clientName: row.name, scope, opensEvery: scope.includes('system/') }
}

/** Only the programs of this server itself may use a secret. */
function listServiceScopes({ scope, auth_method }: ServiceRow): readonly string[] {
  return scope
    .split(' ')
    .filter(
      part => isProgramScope(part) || (auth_method === 'private_key_jwt' && /^(?:system\/|__)/.test(part)),
    )
}

/** The access that ends with an app or a user. */
interface AccessCount {
  readonly grants: number
  readonly apps: number
  readonly users: number
  /** There are more. */
  readonly isCut: boolean
}

export async function countAccess(
  admin: Pick<Admin, 'store' | 'clock' | 'rules'>,
  filter: Omit<GrantFilter, 'after' | 'limit'>,
): Promise<AccessCount> {
  const { items, next } = await listGrants(admin, { ...filter, limit: READ_AT_ONCE })
  return {
    grants: items.length,
    apps: new Set(items.map(({ clientId }) => clientId)).size,
    users: new Set(items.map(({ userId }) => userId)).size,
    isCut: next !== undefined,
  }
}

function toDescription(row: UsableGrant): GrantDescription {
  return {
    id: row.id,
    clientId: row.client_id,
    clientName: row.client_name,
    userId: row.clinician_id,
    username: row.username,
    displayName: row.display_name,
    scope: row.scope,
    patientId: row.patient_id ?? undefined,
    opensEvery: hasUserScope(row.scope),
    isAgent: row.resource !== null,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    endsAt: row.ends_at,
  }
}

/** Finds a grant that can still be used. */
export async function findGrant(
  { store, clock, rules }: Pick<Admin, 'store' | 'clock' | 'rules'>,
  id: string,
): Promise<GrantDescription | AdminFailure> {
  const rows = await selectGrants(store.db).where('grant.id', '=', id).execute()
  const [grant] = await keepUsableGrants(store.db, rules, rows, clock())
  return grant ? toDescription(grant) : failAdmin('grant-unknown', { id })
}

/** Revokes a grant with its tokens. FHIR servers refuse them within 5 seconds. */
export function revokeGrantById(admin: Admin, id: string): Promise<{ readonly id: string } | AdminFailure> {
  return perform(admin, async trx => {
    const grant = await trx
      .selectFrom('grant')
      .select(['client_id', 'clinician_id', 'scope', 'patient_id'])
      .where('id', '=', id)
      .executeTakeFirst()
    if (!grant || !(await revokeGrant(trx, id, admin.clock()))) return failAdmin('grant-unknown', { id })
    const { patient_id, ...before } = grant
    const target = { type: 'grant', id, patient: patient_id ?? undefined } as const
    return { operation: REVOKE_GRANT, target, result: { id }, before }
  })
}
