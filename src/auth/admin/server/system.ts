import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import {
  describeProvider as describeTraits,
  findSecurityWarnings,
  LOG_LEVELS,
  type LoginProvider,
  type LogLevel,
  type Settings,
} from '../../../config/index.ts'
import { isFailure, isRecord } from '../../../core/index.ts'
import { Members, NONE, OneOf } from '../../../endpoint/index.ts'
import type { Store } from '../../../store/index.ts'
import { type CheckResult, getGatherer } from '../../../web/http/index.ts'
import type { Applied, Controls, Reloaded } from '../../base/context.ts'
import type { AuthContext } from '../../oauth/context.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  compare,
  failAdmin,
  type Properties,
  recordAction,
} from '../base/action.ts'
import { defineEndpoint } from '../base/endpoint.ts'
import type { Attention } from '../subject/attention.ts'
import { describeColumns, toJson } from '../subject/columns.ts'
import { isReady, SERVER_COLUMNS, type ServerState, SYSTEM_COLUMNS } from './describe-system.ts'

export const RELOAD_SETTINGS: AdminOperation = { name: 'settings reload', signIn: 'asks' }
/** A consequence of a reload. */
export const POLICY_CHANGED: AdminOperation = { name: 'policy changed', signIn: 'never asks' }
/** A consequence of a reload. */
export const SETTINGS_CHANGED: AdminOperation = { name: 'settings changed', signIn: 'never asks' }
const SET_LOG_LEVEL: AdminOperation = { name: 'log-level set', signIn: 'never asks' }

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

type LiveLogin = Pick<Settings['login'], 'passwords' | 'secondFactor' | 'providers'>

/**
 * Reads the policy, the sign-in providers and the certificates again, on all instances. If anything is invalid on this one,
 * nothing changes.
 */
export async function reloadSettings(
  admin: Admin,
  context: Pick<AuthContext, 'controls' | 'providers'>,
): Promise<Applied | AdminFailure> {
  const { controls } = context
  const getLogin = () => {
    const { passwords, secondFactor, all } = context.providers
    return { passwords, secondFactor, providers: all }
  }
  const reloaded = await reloadHere(admin, { controls, getLogin })
  if (isFailure(reloaded)) return reloaded
  if (reloaded.problems) return failAdmin('settings-invalid', { problems: reloaded.problems.join('; ') })
  await announce(admin.store, 'reload', randomUUID(), admin.clock())
  return reloaded
}

/** Reads the settings again on this instance, and records what changed. `by` names a signal. */
export async function reloadHere(
  admin: Admin,
  { controls, getLogin }: { readonly controls: Controls; readonly getLogin: () => LiveLogin },
  by?: string,
): Promise<Reloaded | AdminFailure> {
  const before = controls.getPolicy()
  const settings = describeLive(controls, getLogin())
  const refused = await recordAction(admin, {
    operation: RELOAD_SETTINGS,
    ...(by !== undefined && { target: by }),
  })
  if (refused) return refused
  const reloaded = await controls.reload()
  if (reloaded.problems) return reloaded
  const after = controls.getPolicy()
  const change = compare(settings, describeLive(controls, getLogin()))
  const hasChanged = Object.keys(change.after ?? {}).length > 0
  const unrecorded =
    (hasChanged ? await recordAction(admin, { operation: SETTINGS_CHANGED, ...change }) : undefined) ??
    (isDeepStrictEqual(before, after)
      ? undefined
      : await recordAction(admin, {
          operation: POLICY_CHANGED,
          ...compare({ policy: before }, { policy: after }),
        }))
  return unrecorded ?? reloaded
}

/** The settings that a reload may change, without secrets. The policy has a record of its own. */
function describeLive(controls: Controls, { passwords, secondFactor, providers }: LiveLogin): Properties {
  return {
    logLevel: controls.getLogLevel(),
    passwords,
    secondFactor,
    providers: providers.map(describeProvider),
  }
}

/** Everything about a provider decides who signs in, and as whom. Only a secret is left out; of files the paths are kept. */
function describeProvider(provider: LoginProvider): Properties {
  const { secrets } = describeTraits(provider)
  return { ...provider, ...Object.fromEntries(secrets.map(name => [name, undefined])) }
}

/** Sets the level of the log on all instances, until their next start. */
export async function setLogLevel(
  admin: Admin,
  { controls }: Pick<AuthContext, 'controls'>,
  level: LogLevel,
): Promise<AdminFailure | undefined> {
  const change = { before: { level: controls.getLogLevel() }, after: { level } }
  const refused = await recordAction(admin, { operation: SET_LOG_LEVEL, target: level, ...change })
  if (refused) return refused
  await controls.setLogLevel(level)
  await announce(admin.store, 'log-level', level, admin.clock())
  return undefined
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

/** Also the policy file is reloaded, so that the endpoint is among those of the policy. */
export const reloadEndpoint = defineEndpoint({
  method: 'POST',
  path: '/policy/reload',
  title: 'Reload the policy file',
  description:
    'Also the sign-in providers and the certificates. If anything is invalid, nothing changes (409). Other instances read their own files within seconds.',
  body: NONE,
  result: Members({
    changed: Type.Array(Type.String(), {
      description: 'Settings, providers and files whose change is in effect, by name.',
    }),
    need_restart: Type.Array(Type.String(), { description: 'Changed settings that need a restart.' }),
  }),
  operation: RELOAD_SETTINGS,
  async handle({ admin, context }) {
    const reloaded = await reloadSettings(admin, context)
    if (isFailure(reloaded)) return reloaded
    return { changed: [...reloaded.changed], need_restart: [...reloaded.needRestart] }
  },
})

const Level = Members({ level: OneOf(LOG_LEVELS) })

export const systemEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/system',
    title: 'Servers, database, upstream and versions',
    result: Members({
      ...describeColumns(SYSTEM_COLUMNS).properties,
      servers: Type.Array(describeColumns(SERVER_COLUMNS)),
    }),
    handle: async ({ app, context }) => ({
      ...toJson(SYSTEM_COLUMNS, context),
      servers: (await findServers(app, context)).map(server => toJson(SERVER_COLUMNS, server)),
    }),
  }),
  defineEndpoint({
    method: 'GET',
    path: '/log-level',
    title: 'The log level',
    result: Level,
    handle: async ({ context }) => ({ level: context.controls.getLogLevel() }),
  }),
  defineEndpoint({
    method: 'PUT',
    path: '/log-level',
    title: 'Set the log level until the next start',
    description: 'On all instances, within seconds.',
    body: Level,
    result: Level,
    operation: SET_LOG_LEVEL,
    async handle({ admin, context, body: { level } }) {
      return (await setLogLevel(admin, context, level)) ?? { level: context.controls.getLogLevel() }
    },
  }),
]

export const SERVER_ATTENTION: Attention = {
  code: 'server',
  path: '/system',
  action: 'See servers',
  async find({ app, context }) {
    const servers = await findServers(app, context)
    return servers
      .filter(server => !isReady(server))
      .map(({ name, checks }) => ({
        name,
        text: `The ${name} server ${checks ? 'is not ready' : 'does not respond'}.`,
      }))
  },
}

/** Settings that `sallyport check` warns about too. */
export const SETTINGS_ATTENTION: Attention = {
  code: 'settings',
  path: '/system',
  action: 'See settings',
  async find({ context: { settings, providers } }) {
    const login = { secondFactor: providers.secondFactor, providers: providers.all }
    return findSecurityWarnings({ ...settings, login }).map(({ code, text }) => ({ name: code, text }))
  },
}
