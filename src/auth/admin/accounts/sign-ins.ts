import { type Static, Type } from '@sinclair/typebox'
import { sql } from 'kysely'
import { CLOSED, formatTime, PageOf, Time } from '../../../endpoint/index.ts'
import type { Store } from '../../../store/index.ts'
import { keepGoodLogins, type LoginRow, selectLogins } from '../../users/find-login.ts'
import { type SignIn as FoundSignIn, toSignIn } from '../../users/sign-ins.ts'
import { type Admin, AdminFailure, failAdmin, type ListPage, type PageRequest } from '../base/action.ts'
import { defineEndpoint, PAGE_QUERY, toPage } from '../base/endpoint.ts'
import { endSignIn } from './change-sign-in.ts'
import { nameOperation } from './perform-on-user.ts'
import type { UserDescription } from './users.ts'

/** A sign-in, and who signed in. */
export interface UserSignIn extends FoundSignIn {
  readonly userId: string
  readonly username: string
}

export interface SignInFilter extends PageRequest {
  readonly userIds?: readonly string[] | undefined
}

/** Rows that are read for a page. */
const READ_AT_ONCE = 1_000

/** Lists sign-ins that are still good, those that end last first. A page may have fewer than `limit`, and others may follow. */
export async function listSignIns(
  { store, rules, clock }: Pick<Admin, 'store' | 'rules' | 'clock'>,
  { after, limit, userIds }: SignInFilter,
): Promise<ListPage<UserSignIn>> {
  const rows = userIds?.length === 0 ? [] : await readLogins(store, userIds, after)
  const good = await keepGoodLogins(store.db, rules, rows, clock())
  const shown = good.slice(0, limit)
  const isCut = good.length > limit
  const last = isCut ? shown.at(-1) : rows.length === READ_AT_ONCE ? rows.at(-1) : undefined
  return {
    items: shown.map(row => ({ ...toSignIn(row), userId: row.clinician_id, username: row.username })),
    next: last && `${last.expires_at}.${last.id_hash}`,
  }
}

function readLogins(
  { db }: Store,
  userIds: readonly string[] | undefined,
  after: string | undefined,
): Promise<LoginRow[]> {
  const [, endsAt, id] = /^(\d{1,15})\.(.{1,100})$/.exec(after ?? '') ?? []
  return selectLogins(db)
    .$if(userIds !== undefined, query => query.where('login.clinician_id', 'in', userIds ?? []))
    .$if(endsAt !== undefined, query =>
      query.where(sql<boolean>`(login.expires_at, login.id_hash) < (${Number(endsAt)}, ${id})`),
    )
    .orderBy('login.expires_at', 'desc')
    .orderBy('login.id_hash', 'desc')
    .limit(READ_AT_ONCE)
    .execute()
}

/** Ends a sign-in of anybody. */
export async function endSignInById(admin: Admin, id: string): Promise<UserDescription | AdminFailure> {
  const login = await admin.store.db
    .selectFrom('login')
    .select('clinician_id')
    .where('id_hash', '=', id)
    .executeTakeFirst()
  return login ? endSignIn(admin, { id: login.clinician_id }, id) : failAdmin('sign-in-unknown')
}

const SIGN_IN = {
  id: Type.String({ description: 'Not a secret: it gives no access.' }),
  signed_in_at: Time,
  last_used_at: Time,
  expires_at: Time,
  browser: Type.Optional(Type.String({ description: 'For example `Firefox on Windows`.' })),
  address: Type.Optional(Type.String()),
}

export const SignIn = Type.Object(SIGN_IN, CLOSED)

const OfUser = Type.Object({ ...SIGN_IN, clinician_id: Type.String(), username: Type.String() }, CLOSED)

export function describeSignIn(signIn: FoundSignIn): Static<typeof SignIn> {
  const { id, createdAt, lastUsedAt, endsAt, browser, address } = signIn
  return {
    id,
    signed_in_at: formatTime(createdAt),
    last_used_at: formatTime(lastUsedAt),
    expires_at: formatTime(endsAt),
    ...(browser !== undefined && { browser }),
    ...(address !== undefined && { address }),
  }
}

export function describeUserSignIn(signIn: UserSignIn): Static<typeof OfUser> {
  return { ...describeSignIn(signIn), clinician_id: signIn.userId, username: signIn.username }
}

export const signInEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/sign-ins',
    title: 'Browsers in which users are signed in now, those that end latest come first',
    description: 'Of everybody, or of a user. A page may have fewer items than `limit`.',
    query: Type.Object(
      {
        clinician_id: Type.Optional(Type.String({ description: 'The id of a clinician or an account.' })),
        ...PAGE_QUERY,
      },
      CLOSED,
    ),
    result: PageOf(OfUser),
    async handle({ admin, query: { clinician_id, ...page } }) {
      const userIds = clinician_id === undefined ? undefined : [clinician_id]
      return toPage(await listSignIns(admin, { ...page, userIds }), describeUserSignIn)
    },
  }),
  defineEndpoint({
    method: 'DELETE',
    path: '/sign-ins/:id',
    title: 'End a sign-in',
    description: 'Apps that were launched in it lose their access, except with `offline_access`.',
    operation: nameOperation('clinician', 'end-sign-in'),
    result: Type.Object({ id: Type.String() }, CLOSED),
    async handle({ admin, params: { id = '' } }) {
      const user = await endSignInById(admin, id)
      return user instanceof AdminFailure ? user : { id }
    },
  }),
]
