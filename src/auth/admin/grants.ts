import { type Static, Type } from '@sinclair/typebox'
import { sql } from 'kysely'
import { isFailure } from '../../core/index.ts'
import { html, renderDateTime } from '../../web/index.ts'
import { keepUsableGrants, revokeGrant, selectGrants, type UsableGrant } from '../oauth/grants/grant.ts'
import {
  type Admin,
  AdminFailure,
  type ListPage,
  type Operation,
  type PageRequest,
  perform,
} from './action.ts'
import { CLOSED, defineEndpoint, formatTime, PAGE_QUERY, PageOf, Time, toPage } from './endpoint.ts'

const REVOKE_GRANT: Operation = { name: 'grant revoke', signIn: 'never asks' }

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
  readonly createdAt: number
  readonly lastUsedAt: number
  /** Undefined: until it is revoked. */
  readonly endsAt: number | undefined
}

/** One of both is set, so that an index has the grants in the order of the page. */
export interface GrantFilter extends PageRequest {
  readonly clientId?: string | undefined
  readonly userId?: string | undefined
}

/** Grants that are read for a page at most, however few of them have not ended. */
const READ_FOR_PAGE = 2_000

/** Lists grants that can still be used, newest first. A page may have fewer than `limit`, and others may follow. */
export async function listGrants(
  { store, clock, rules }: Pick<Admin, 'store' | 'clock' | 'rules'>,
  { clientId, userId, after, limit }: GrantFilter,
): Promise<ListPage<GrantDescription> | AdminFailure> {
  if (clientId === undefined && userId === undefined)
    return new AdminFailure('invalid', 'a list of grants needs client_id or clinician_id')
  const position = readPosition(after)
  const rows = await selectGrants(store.db)
    .$if(clientId !== undefined, query => query.where('grant.client_id', '=', clientId ?? ''))
    .$if(userId !== undefined, query => query.where('grant.clinician_id', '=', userId ?? ''))
    .$if(position !== undefined, query =>
      query.where(sql<boolean>`("grant".created_at, "grant".id) < (${position?.createdAt}, ${position?.id})`),
    )
    .orderBy('grant.created_at', 'desc')
    .orderBy('grant.id', 'desc')
    .limit(READ_FOR_PAGE)
    .execute()
  const current = await keepUsableGrants(store.db, rules, rows, clock())
  const shown = current.slice(0, limit)
  const last = current.length > limit ? shown.at(-1) : rows.length === READ_FOR_PAGE ? rows.at(-1) : undefined
  return { items: shown.map(toDescription), next: last && `${last.created_at}.${last.id}` }
}

function readPosition(after: string | undefined) {
  const [, createdAt, id] = /^(\d{1,15})\.(.{1,100})$/.exec(after ?? '') ?? []
  return createdAt === undefined ? undefined : { createdAt: Number(createdAt), id }
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
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    endsAt: row.ends_at,
  }
}

/** Finds a grant that can still be used. */
async function findGrant(
  { store, clock, rules }: Pick<Admin, 'store' | 'clock' | 'rules'>,
  id: string,
): Promise<GrantDescription | AdminFailure> {
  const rows = await selectGrants(store.db).where('grant.id', '=', id).execute()
  const [grant] = await keepUsableGrants(store.db, rules, rows, clock())
  return grant ? toDescription(grant) : new AdminFailure('not_found', `there is no grant ${id}`)
}

/** Revokes a grant with its tokens. FHIR servers refuse them within 5 seconds. */
export function revokeGrantById(admin: Admin, id: string): Promise<{ readonly id: string } | AdminFailure> {
  return perform(admin, async trx => {
    const grant = await trx
      .selectFrom('grant')
      .select(['client_id', 'clinician_id', 'scope'])
      .where('id', '=', id)
      .executeTakeFirst()
    if (!grant || !(await revokeGrant(trx, id, admin.clock())))
      return new AdminFailure('not_found', `there is no grant ${id}`)
    return { operation: REVOKE_GRANT, target: id, result: { id }, before: grant }
  })
}

const Grant = Type.Object(
  {
    id: Type.String({ description: 'Also the id of its launch in the audit trail.' }),
    client_id: Type.String(),
    clinician_id: Type.String(),
    username: Type.String(),
    scope: Type.String(),
    patient: Type.Optional(Type.String()),
    created_at: Time,
    last_used_at: Time,
    expires_at: Type.Optional(Time),
  },
  CLOSED,
)

function describeGrant(grant: GrantDescription): Static<typeof Grant> {
  return {
    id: grant.id,
    client_id: grant.clientId,
    clinician_id: grant.userId,
    username: grant.username,
    scope: grant.scope,
    ...(grant.patientId !== undefined && { patient: grant.patientId }),
    created_at: formatTime(grant.createdAt),
    last_used_at: formatTime(grant.lastUsedAt),
    ...(grant.endsAt !== undefined && { expires_at: formatTime(grant.endsAt) }),
  }
}

export const grantEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/grants',
    title: 'Who has access now: grants that can still be used, newest first',
    description: 'Needs `client_id` or `clinician_id`. A page may have fewer items than `limit`.',
    query: Type.Object(
      {
        client_id: Type.Optional(Type.String()),
        clinician_id: Type.Optional(Type.String({ description: 'The id of a clinician or an account.' })),
        ...PAGE_QUERY,
      },
      CLOSED,
    ),
    result: PageOf(Grant),
    async handle({ admin, query: { client_id, clinician_id, ...page } }) {
      const found = await listGrants(admin, { clientId: client_id, userId: clinician_id, ...page })
      return isFailure(found) ? found : toPage(found, describeGrant)
    },
  }),
  defineEndpoint({
    method: 'DELETE',
    path: '/grants/:id',
    title: 'Revoke a grant with all its tokens',
    description: 'FHIR servers refuse them within 5 seconds.',
    result: Type.Object({ id: Type.String() }, CLOSED),
    operation: REVOKE_GRANT,
    page: {
      path: '/grants/:id/revoke',
      section: 'apps',
      title: 'Revoke this access?',
      button: 'Revoke access',
      back: '/apps',
      done: 'revoked',
      async ask({ admin, params: { id = '' }, findPatient }) {
        const grant = await findGrant(admin, id)
        if (isFailure(grant)) return grant
        const { clientId, clientName, username, displayName, patientId, lastUsedAt } = grant
        const patient = patientId === undefined ? undefined : await findPatient(patientId)
        return {
          text: 'The app’s tokens are refused within 5 seconds. The user can launch the app again.',
          back: `/apps/${encodeURIComponent(clientId)}`,
          facts: [
            ['App', html`${clientName} <code>${clientId}</code>`],
            ['User', html`${displayName} <code>${username}</code>`],
            [
              'Patient',
              patientId === undefined
                ? 'Any that the user may see'
                : html`${patient} <code>${patientId}</code>`,
            ],
            ['Last used', renderDateTime(lastUsedAt)],
          ],
        }
      },
    },
    handle: async ({ admin, params: { id = '' } }) => revokeGrantById(admin, id),
  }),
]
