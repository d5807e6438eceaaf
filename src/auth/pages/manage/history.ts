import {
  findLastTokens,
  findOwnEvents,
  findPage,
  type KeptRecord,
  openEventIds,
} from '../../../audit/index.ts'
import { DAY_MS } from '../../../core/index.ts'
import { readDetails } from '../../base/audit.ts'
import { LIFETIME, LIMITS } from '../../base/limits.ts'
import type { AuthUser } from '../../base/user.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { hasScope, keepUsableGrants, selectGrants } from '../../oauth/grants/grant.ts'
import { findKnownApps } from '../../users/known.ts'
import { nameEvent } from '../../words/old-texts.ts'

/** Access of an app that has ended. */
export interface PastAccess {
  readonly app: string
  /** Whether it is a first-party app, for which nobody is asked. */
  readonly isOfHospital: boolean
  readonly patient: string | undefined
  readonly allowedAt: number
  readonly endedAt: number
  readonly end: GrantEnd
}

export type GrantEnd = 'user' | 'app' | 'misuse' | 'hospital' | 'sign-out' | 'password' | 'expired'

export interface GrantHistory {
  readonly past: readonly PastAccess[]
  /** Where older entries follow. */
  readonly older: string | undefined
}

/** Reads from the audit trail what apps a user allowed whose access has ended, newest first: grants are soon deleted. */
export async function readHistory(context: AuthContext, user: AuthUser, before = ''): Promise<GrantHistory> {
  const { store } = context
  const ids = await openEventIds(store)
  const page = await findOwnEvents(store, {
    subject: user.id,
    kinds: ['authorize'],
    after: ids.parse(before),
    limit: LIMITS.pastAccess,
  })
  const last = page.length === LIMITS.pastAccess ? page.at(-1) : undefined
  return { past: await describeEnded(context, user, page), older: last && ids.format(last) }
}

async function describeEnded(
  context: AuthContext,
  user: AuthUser,
  allowed: readonly KeptRecord[],
): Promise<readonly PastAccess[]> {
  const { store, clock } = context
  const launches = allowed.flatMap(({ launch_id }) => launch_id ?? [])
  if (launches.length === 0) return []
  const clients = allowed.flatMap(({ client_id }) => client_id ?? [])
  const since = Math.min(...allowed.map(({ at }) => at))
  const ends = { since, limit: LIMITS.pastEnds }
  const [usable, tokens, apps, own, changes] = await Promise.all([
    findUsable(context, launches),
    findLastTokens(store, launches),
    findKnownApps(store.db, clients),
    findOwnEvents(store, { ...ends, subject: user.id, kinds: ['revoke', 'logout'] }),
    findPage(store, {
      ...ends,
      events: [{ kind: 'admin' }],
      allowed: true,
      target: { accounts: [user.id], clients, grants: launches },
    }),
  ])
  const events = [...own, ...changes.records].toSorted((a, b) => a.at - b.at)
  return allowed.flatMap(record => {
    const lastToken = tokens.get(record.launch_id ?? '')
    // An app that never exchanged its code had no access.
    if (lastToken === undefined || usable.has(record.launch_id ?? '')) return []
    const app = apps.get(record.client_id ?? '')
    const expiry = Math.min(findExpiry(context, record, lastToken), clock())
    const found = events
      .filter(event => event.id > record.id && event.at >= lastToken && event.at <= expiry)
      .map(event => ({ at: event.at, end: classifyEnd(event, record) }))
      .find(({ end }) => end !== undefined)
    return [
      {
        app: app?.name ?? 'An app that is no longer registered',
        isOfHospital: Boolean(app?.first_party),
        patient: record.patient_id ?? undefined,
        allowedAt: record.at,
        endedAt: found?.at ?? expiry,
        end: found?.end ?? 'expired',
      },
    ]
  })
}

async function findUsable(
  { store: { db }, rules, clock }: AuthContext,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await selectGrants(db).where('grant.id', 'in', ids).execute()
  return new Set((await keepUsableGrants(db, rules, rows, clock())).map(({ id }) => id))
}

/** When the access ended if nobody ended it before. */
function findExpiry({ rules }: AuthContext, { at, details }: KeptRecord, lastToken: number): number {
  const scope = readGrantedScope(details)
  if (hasScope(scope, 'offline_access')) {
    const idle = lastToken + LIFETIME.offlineRefresh
    return rules.offlineAccessMaxDays === 0 ? idle : Math.min(idle, at + rules.offlineAccessMaxDays * DAY_MS)
  }
  return hasScope(scope, 'online_access')
    ? at + LIFETIME.login
    : lastToken + rules.accessTokenTtlSeconds * 1000
}

/** The record of an authorization compares the requested scopes with the granted ones. */
function readGrantedScope(details: string | null): string {
  const { compared = [] } = readDetails(details)
  return compared.find(({ name }) => name === 'scope')?.expected?.[0] ?? ''
}

/** Operations of administrators that end access, and the members whose change does. */
const ENDING =
  /^(?:grant revoke|(?:account|clinician) (?:end-sessions|disable|remove|set-password)|client (?:disable|remove)) /
const ENDING_CHANGE = /^(?:account|clinician|client) set /
const ENDING_MEMBERS = /"(?:scope|disabled|fhirUser|relatedPersons)"/

function classifyEnd(
  event: KeptRecord,
  { launch_id, client_id, patient_id, details }: KeptRecord,
): GrantEnd | undefined {
  const isNamed = (grants: readonly string[] | undefined) => grants?.includes(launch_id ?? '')
  switch (event.kind) {
    case 'logout': {
      // Records of release 0.2.0 name no grants.
      const isEnded =
        isNamed(readDetails(event.details).ended) ?? !hasScope(readGrantedScope(details), 'offline_access')
      return isEnded ? 'sign-out' : undefined
    }
    case 'revoke': {
      if (event.launch_id !== null)
        return event.launch_id === launch_id
          ? nameEvent(event) === 'token-revoked'
            ? 'app'
            : 'misuse'
          : undefined
      const isThis = event.client_id === client_id && [null, patient_id].includes(event.patient_id)
      return isThis ? 'user' : undefined
    }
    default: {
      if (event.method === null) {
        const isKept = isNamed(readDetails(event.details).kept)
        return nameEvent(event) === 'password-changed' && !isKept ? 'password' : undefined
      }
      const { request, resource_type, resource_id } = event
      const isAbout = { grant: launch_id, client: client_id }[resource_type ?? ''] ?? resource_id
      const isEnding =
        ENDING.test(`${request} `) ||
        (ENDING_CHANGE.test(`${request} `) && ENDING_MEMBERS.test(event.details ?? ''))
      return isEnding && resource_id === isAbout ? 'hospital' : undefined
    }
  }
}
