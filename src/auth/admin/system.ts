import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { FastifyInstance } from 'fastify'
import { LOG_LEVELS, type LogLevel, listFeatures } from '../../config/index.ts'
import { isRecord } from '../../fhir/index.ts'
import type { Store } from '../../store/index.ts'
import { type CheckResult, getGatherer, version } from '../../web/index.ts'
import type { Controls, Reloaded } from '../base/context.ts'
import type { AuthContext } from '../oauth/context.ts'
import { type Admin, AdminFailure, compare, type Operation, recordAction } from './action.ts'

export const RELOAD_SETTINGS: Operation = { name: 'settings reload', signIn: 'asks' }
/** A consequence of a reload. */
export const POLICY_CHANGED: Operation = { name: 'policy changed', signIn: 'never asks' }
export const SET_LOG_LEVEL: Operation = { name: 'log-level set', signIn: 'never asks' }

export interface ServerState {
  readonly name: 'auth' | 'fhir' | 'app'
  readonly url: string
  /** Undefined if the server did not answer as Sallyport does. */
  readonly checks: readonly CheckResult[] | undefined
  /** Processes that serve the port. Undefined for a server that may be on another host. */
  readonly processes: number | undefined
}

/** The state of the three servers now. The others are asked over HTTP. */
export async function findServers(
  app: FastifyInstance,
  context: AuthContext,
): Promise<readonly ServerState[]> {
  const { issuerUrl, fhirBaseUrl, appUrl } = context.settings
  const [own, fhirChecks, appChecks] = await Promise.all([
    getGatherer(app).readiness(),
    readReadiness(context, fhirBaseUrl),
    readReadiness(context, appUrl),
  ])
  return [
    { name: 'auth', url: issuerUrl, checks: own.flat(), processes: own.length },
    { name: 'fhir', url: fhirBaseUrl, checks: fhirChecks, processes: undefined },
    { name: 'app', url: appUrl, checks: appChecks, processes: undefined },
  ]
}

const WAIT_MS = 2000

/** Reads `/readyz` of another server. */
async function readReadiness(
  { fetch }: AuthContext,
  baseUrl: string,
): Promise<readonly CheckResult[] | undefined> {
  try {
    const signal = AbortSignal.timeout(WAIT_MS)
    const response = await fetch(new URL('/readyz', baseUrl), { signal, redirect: 'manual' })
    const body: unknown = await response.json()
    const checks = isRecord(body) && Array.isArray(body.checks) ? body.checks : undefined
    return checks?.filter(isCheckResult)
  } catch {
    return undefined
  }
}

function isCheckResult(value: unknown): value is CheckResult {
  if (!isRecord(value) || typeof value.name !== 'string' || typeof value.ok !== 'boolean') return false
  return value.note === undefined || typeof value.note === 'string'
}

/** The versions and settings of the servers. */
export function describeSystem({ settings, store, providers, controls, clock }: AuthContext) {
  const { fhir, audit } = settings
  return {
    version,
    node: process.version,
    startedAt: clock() - process.uptime() * 1000,
    database: store.dialect,
    upstreamUrl: fhir.upstreamUrl,
    passwords: providers.passwords,
    providers: providers.all.map(({ id }) => id),
    policyRules: controls.getPolicy()?.rules.length,
    audit: audit.kept,
    features: listFeatures(settings),
    logLevel: controls.getLogLevel(),
  }
}

/**
 * Reads the policy, the sign-in providers and the certificates again, on all instances. If anything is invalid on this one,
 * nothing changes.
 */
export async function reloadSettings(
  admin: Admin,
  { controls }: Pick<AuthContext, 'controls'>,
): Promise<Exclude<Reloaded, { readonly problems: readonly string[] }> | AdminFailure> {
  const before = controls.getPolicy()
  await recordAction(admin, { operation: RELOAD_SETTINGS })
  const reloaded = await controls.reload()
  if (reloaded.problems) return new AdminFailure('conflict', reloaded.problems.join('; '))
  const after = controls.getPolicy()
  if (!isDeepStrictEqual(before, after))
    await recordAction(admin, {
      operation: POLICY_CHANGED,
      ...compare({ policy: before }, { policy: after }),
    })
  await announce(admin.store, 'reload', randomUUID(), admin.clock())
  return reloaded
}

/** Sets the level of the log on all instances, until their next start. */
export async function setLogLevel(
  admin: Admin,
  { controls }: Pick<AuthContext, 'controls'>,
  level: LogLevel,
): Promise<void> {
  const change = { before: { level: controls.getLogLevel() }, after: { level } }
  await recordAction(admin, { operation: SET_LOG_LEVEL, target: level, ...change })
  await controls.setLogLevel(level)
  await announce(admin.store, 'log-level', level, admin.clock())
}

/** The actions that all instances of a deployment repeat. */
type RuntimeName = 'reload' | 'log-level'

/** How soon another instance repeats an action. */
const EVERY_MS = 2_000

/** Announces an action to the other instances, which share the database. */
export async function announce({ db }: Store, name: RuntimeName, value: string, now: number): Promise<void> {
  const announced = { value, changed_at: now, expires_at: null }
  await db
    .insertInto('runtime_value')
    .values({ name, ...announced })
    .onConflict(conflict => conflict.column('name').doUpdateSet(announced))
    .execute()
}

interface FollowOptions {
  readonly everyMs?: number
  readonly onError: (error: unknown) => void
}

/** Repeats the actions that another instance announces from now on (ADMIN-9). Call it in one process of an instance. */
export async function followAnnouncements(
  { db }: Store,
  controls: Controls,
  { everyMs = EVERY_MS, onError }: FollowOptions,
): Promise<{ stop(): Promise<void> }> {
  let seen: ReadonlyMap<string, string> | undefined
  let running: Promise<void> | undefined

  async function look(): Promise<void> {
    const rows = await db.selectFrom('runtime_value').select(['name', 'value']).execute()
    const found = new Map(rows.map(({ name, value }) => [name, value]))
    const news = rows.filter(({ name, value }) => seen !== undefined && seen.get(name) !== value)
    seen = found
    for (const { name, value } of news) await repeat(controls, name, value)
  }

  const schedule = () => {
    running ??= look()
      .catch(onError)
      .finally(() => {
        running = undefined
      })
    return running
  }
  await schedule()
  const timer = setInterval(schedule, everyMs).unref()
  return {
    stop: async () => {
      clearInterval(timer)
      await running
    },
  }
}

async function repeat(controls: Controls, name: string, value: string): Promise<void> {
  if (name === 'reload') await controls.reload()
  const level = LOG_LEVELS.find(known => name === 'log-level' && known === value)
  if (level !== undefined && level !== controls.getLogLevel()) await controls.setLogLevel(level)
}
