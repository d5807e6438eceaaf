import type { FastifyInstance } from 'fastify'
import { sql } from 'kysely'
import { type Static, Type } from 'typebox'
import { countRecords, findPage } from '../../../audit/index.ts'
import { findSecurityWarnings } from '../../../config/index.ts'
import { DAY_MS, isFailure, MINUTE_MS, shortenList } from '../../../core/index.ts'
import { CLOSED } from '../../../endpoint/index.ts'
import { isPresent } from '../../../store/index.ts'
import { createUserLookup, type LookupType } from '../../base/fhir-reader.ts'
import { formatFhirUser } from '../../base/user.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { findKnownAccounts } from '../../users/known.ts'
import { checkProvider } from '../../users/providers/providers.ts'
import { describeMadeForLoopback } from '../../users/validity/made-for-loopback.ts'
import { findShared } from '../accounts/shared-fhir-users.ts'
import type { Admin } from '../base/action.ts'
import { defineEndpoint } from '../base/endpoint.ts'
import { isReady } from '../server/describe-system.ts'
import { listKeys } from '../server/keys.ts'
import { findServers } from '../server/system.ts'
import { findVerification, type VerificationReport } from '../trail/verification.ts'
import { APPS, USERS } from './listed.ts'
import { Matter } from './matter.ts'

const Counts = Type.Object(
  {
    apps: Type.Integer(),
    clinicians: Type.Integer(),
    accounts: Type.Integer({ description: 'Of patients and related persons.' }),
    sign_ins: Type.Integer({ description: 'Browsers with a signed-in user.' }),
    refused_sign_ins: Type.Optional(
      Type.Integer({ description: 'In the last 24 hours. Absent if there are too many to count.' }),
    ),
  },
  CLOSED,
)

interface Overview {
  readonly counts: Static<typeof Counts>
  readonly attention: readonly Matter[]
}

/** The state of the deployment at a glance: counts, and what needs attention. */
export async function findOverview(
  admin: Admin,
  context: AuthContext,
  app: FastifyInstance,
): Promise<Overview> {
  const counts = await findCounts(admin)
  const found = await Promise.all([
    findServerMatters(app, context),
    findProviderMatters(context),
    ...APPS.map(find => find(admin)),
    findDemoMatters(context),
    findKeyMatters(admin, context),
    findSignInMatters(counts),
    findBurstMatters(admin),
    findTrailMatters(admin, context),
    findUserMatters(context),
    findSharedMatters(context),
    ...USERS.map(find => find(admin)),
    findLoopbackMatters(context),
    findSecurityMatters(context),
  ])
  return { counts, attention: found.flat() }
}

async function findCounts({ store, clock }: Admin): Promise<Overview['counts']> {
  const { db } = store
  const count = sql<number>`count(*)`.as('count')
  const isAccount = sql<boolean>`(fhir_user_id like 'Patient/%' or fhir_user_id like 'RelatedPerson/%')`
  const [apps, users, accounts, signIns, refused] = await Promise.all([
    db.selectFrom('client').select(count).where(isPresent).executeTakeFirstOrThrow(),
    db.selectFrom('clinician').select(count).executeTakeFirstOrThrow(),
    db.selectFrom('clinician').select(count).where(isAccount).executeTakeFirstOrThrow(),
    db.selectFrom('login').select(count).where('expires_at', '>', clock()).executeTakeFirstOrThrow(),
    countRecords(store, { events: [{ kind: 'login' }], allowed: false, since: clock() - DAY_MS }),
  ])
  return {
    apps: Number(apps.count),
    clinicians: Number(users.count) - Number(accounts.count),
    accounts: Number(accounts.count),
    sign_ins: Number(signIns.count),
    ...(refused && { refused_sign_ins: refused.refused }),
  }
}

async function findServerMatters(app: FastifyInstance, context: AuthContext): Promise<readonly Matter[]> {
  const servers = await findServers(app, context)
  return servers
    .filter(server => !isReady(server))
    .map(({ name, checks }) => ({
      code: `server-${name}`,
      text: `The ${name} server ${checks ? 'is not ready' : 'does not respond'}.`,
      path: '/system',
    }))
}

/** A page does not wait longer for a provider, which is slow for users too. */
const PROVIDER_MS = 2_000

async function findProviderMatters({ providers }: AuthContext): Promise<readonly Matter[]> {
  const matters = providers.all.map(async provider => {
    const late = new Promise<'late'>(resolve => setTimeout(resolve, PROVIDER_MS, 'late').unref())
    const answer = await Promise.race([
      checkProvider(provider).then(
        () => 'ok' as const,
        () => 'late' as const,
      ),
      late,
    ])
    const text = `The sign-in provider ${provider.name} does not respond as expected.`
    return answer === 'ok' ? [] : [{ code: `provider-${provider.id}`, text, path: '/providers' }]
  })
  return (await Promise.all(matters)).flat()
}

/** The demo app needs no consent. Whoever does not use it should not have it. */
async function findDemoMatters({ store, settings, rules }: AuthContext): Promise<readonly Matter[]> {
  if (rules.onLoopback) return []
  const id = settings.app.clientId
  const unused = await store.db
    .selectFrom('client')
    .select('name')
    .where('client_id', '=', id)
    .where('disabled', '=', false)
    .where(isPresent)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(selectFrom('grant').select('grant.id').whereRef('grant.client_id', '=', 'client.client_id')),
      ),
    )
    .executeTakeFirst()
  const text = `${unused?.name} comes with this server, needs no consent, and nobody uses it: disable it unless you need it.`
  return unused ? [{ code: 'apps-unused', text, path: `/apps/${encodeURIComponent(id)}` }] : []
}

/** The age of a key without a rotation by age, at which somebody should rotate it. */
const OLD_KEY_DAYS = 365

async function findKeyMatters(admin: Admin, { settings }: AuthContext): Promise<readonly Matter[]> {
  const signing = (await listKeys(admin)).find(({ state }) => state === 'signs')
  if (!signing) return []
  const days = Math.floor((admin.clock() - signing.createdAt) / DAY_MS)
  // A day later, because servers rotate keys only while they sign.
  const limit = settings.keyMaxAgeDays > 0 ? settings.keyMaxAgeDays + 1 : OLD_KEY_DAYS
  return days < limit
    ? []
    : [{ code: 'keys-old', text: `The signing key is ${days} days old: rotate it.`, path: '/keys' }]
}

/** Refused sign-ins of a day that are more than people forget their passwords. */
const MANY_REFUSED = 20

function findSignInMatters({ refused_sign_ins: refused }: Overview['counts']): readonly Matter[] {
  if (refused !== undefined && refused < MANY_REFUSED) return []
  const text = `${refused?.toLocaleString('en') ?? 'Very many'} sign-ins were refused in the last 24 hours.`
  return [{ code: 'sign-ins-refused', text, path: '/audit?kind=login&result=refused' }]
}

/** Guesses go on now: these are more than somebody mistypes a password, and more than a few people do. */
const BURST_MINUTES = 15
const MANY_OF_ONE = 5
const MANY_OF_ALL = 10

/** Refused sign-ins that are compared. */
const COMPARED_REFUSALS = 1_000

/**
 * The refused sign-ins of the last minutes. The audit trail counts those of a minute before it stores them, and keeps them after
 * a sign-in that succeeded. Wrong passwords of an account are stored at once.
 */
async function findBurstMatters({ store, clock }: Admin): Promise<readonly Matter[]> {
  const since = clock() - BURST_MINUTES * MINUTE_MS
  const wrong = await store.db
    .selectFrom('wrong_password')
    .select(({ fn }) => ['clinician_id as id', fn.countAll().as('count')])
    .where('at', '>', since)
    .groupBy('clinician_id')
    .execute()
  const { records } = await findPage(store, {
    events: [{ kind: 'login' }],
    allowed: false,
    since,
    limit: COMPARED_REFUSALS,
  })
  const refused = [...Map.groupBy(records, ({ subject }) => subject)].map(
    ([id, some]) => ({ id, count: some.reduce((sum, { repeats }) => sum + (repeats ?? 1), 0) }) as const,
  )
  const counts = new Map<string | null, number>()
  for (const { id, count } of [...wrong, ...refused])
    counts.set(id, Math.max(counts.get(id) ?? 0, Number(count)))
  const guessed = [...counts].filter(([id, count]) => id !== null && count > MANY_OF_ONE)
  const accounts = await findKnownAccounts(
    store.db,
    guessed.map(([id]) => id),
  )
  const names = [...accounts.values()].map(({ username }) => username).toSorted()
  const [first] = names
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  if (first !== undefined)
    return [
      {
        code: 'sign-ins-burst',
        text: `Accounts with more than ${MANY_OF_ONE} refused sign-ins in the last ${BURST_MINUTES} minutes: ${shortenList(names)}. Somebody may be guessing passwords.`,
        path: `/audit?${new URLSearchParams({ kind: 'login', result: 'refused', ...(names.length === 1 && { user: first }) })}`,
      },
    ]
  if (total <= MANY_OF_ALL) return []
  const text = `${total.toLocaleString('en')} sign-ins were refused in the last ${BURST_MINUTES} minutes, with various or unknown usernames. Somebody may be guessing passwords.`
  return [{ code: 'sign-ins-burst', text, path: '/audit?kind=login&result=refused' }]
}

const VERIFIED_DAYS = 30

async function findTrailMatters(admin: Admin, { settings }: AuthContext): Promise<readonly Matter[]> {
  if (!settings.audit.kept && !settings.onLoopback) return []
  if (!settings.audit.kept) return [{ code: 'trail-off', text: 'The audit trail is off.', path: '/system' }]
  const text = describeVerification(await findVerification(admin), admin.clock())
  return text === undefined ? [] : [{ code: 'audit-verification', text, path: '/audit/verify' }]
}

function describeVerification({ state, at = 0 }: VerificationReport, now: number): string | undefined {
  if (state === 'changed') return 'The last verification found that the audit trail was changed.'
  if (state === 'unknown-head')
    return 'The audit trail does not contain the head of the last verification: the head was mistyped, or records were removed.'
  if (state === 'never') return 'The audit trail has never been verified.'
  if (state === 'failed') return 'The last verification of the audit trail did not finish.'
  const days = Math.floor((now - at) / DAY_MS)
  return days < VERIFIED_DAYS ? undefined : `The audit trail was last verified ${days} days ago.`
}

/** Accounts that are compared with the FHIR server at most, and in one search. */
const COMPARED = 300
const COMPARED_AT_ONCE = 100

/** Accounts whose resource the FHIR server does not have. */
async function findUserMatters(context: AuthContext): Promise<readonly Matter[]> {
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
  if (names.length === 0) return []
  const who = names.length === 1 ? `account ${names[0]}` : `accounts ${shortenList(names)}`
  return [
    {
      code: 'users-unknown',
      text: `The FHIR server has no resource for the FHIR user of the ${who}.`,
      path: buildSearch(names),
    },
  ]
}

/** FHIR users of several accounts: apps and the FHIR server cannot tell who it was. */
async function findSharedMatters(context: AuthContext): Promise<readonly Matter[]> {
  const shared = await findShared(context, COMPARED)
  const [first] = shared
  if (!first) return []
  const what = shared.length === 1 ? 'a FHIR user' : 'FHIR users'
  return [
    {
      code: 'users-shared',
      text: `Several accounts have ${what} in common: ${shortenList(shared.map(({ reference }) => reference))}.`,
      path: buildSearch([first.username]),
    },
  ]
}

function buildSearch([first = '']: readonly string[]): string {
  return `/clinicians?${new URLSearchParams({ search: first })}`
}

/** Undefined if the FHIR server does not say. */
async function findKnownIds(
  context: AuthContext,
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

/** Settings that `sallyport check` warns about too. */
function findSecurityMatters({ settings, providers }: AuthContext): readonly Matter[] {
  const login = { secondFactor: providers.secondFactor, providers: providers.all }
  return findSecurityWarnings({ ...settings, login }).map(({ code, text }) => ({
    code: `settings-${code}`,
    text,
    path: '/system',
  }))
}

async function findLoopbackMatters({ store, rules }: AuthContext): Promise<readonly Matter[]> {
  const text = await describeMadeForLoopback(store, rules)
  return text === undefined ? [] : [{ code: 'made-for-loopback', text, path: '/clinicians' }]
}

export const overviewEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/overview',
    title: 'Counts, and what needs attention',
    result: Type.Object({ counts: Counts, attention: Type.Array(Matter) }, CLOSED),
    handle: ({ admin, context, app }) => findOverview(admin, context, app),
  }),
]
