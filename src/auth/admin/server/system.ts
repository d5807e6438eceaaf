import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import {
  describeProvider as describeTraits,
  findSecurityWarnings,
  LOG_LEVELS,
  type LoginProvider,
  type LogLevel,
} from '../../../config/index.ts'
import { isFailure, isRecord } from '../../../core/index.ts'
import { Members, OneOf } from '../../../endpoint/index.ts'
import { type CheckResult, getGatherer } from '../../../web/http/index.ts'
import { announce } from '../../base/announcements.ts'
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
import type { Attention } from '../subject/attention.ts'
import { describeColumns, toJson } from '../subject/columns.ts'
import { defineEndpoint } from '../subject/endpoint.ts'
import { isReady, SERVER_COLUMNS, type ServerState, SYSTEM_COLUMNS } from './describe-system.ts'

export const RELOAD_SETTINGS: AdminOperation = { name: 'settings reload', signIn: 'asks' }
/** The consequences of a reload. */
export const POLICY_CHANGED: AdminOperation = { name: 'policy changed', signIn: 'never asks' }
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

/**
 * Reads the policy, the sign-in providers and the certificates again, on all instances. If anything is invalid on this one,
 * nothing changes.
 */
export async function reloadSettings(admin: Admin, controls: Controls): Promise<Applied | AdminFailure> {
  const reloaded = await reloadHere(admin, controls)
  if (isFailure(reloaded)) return reloaded
  if (reloaded.problems) return failAdmin('settings-invalid', { problems: reloaded.problems.join('; ') })
  await announce(admin.store, 'reload', randomUUID(), admin.clock())
  return reloaded
}

/** Reads the settings again on this instance, and records what changed. `by` names a signal. */
export async function reloadHere(
  admin: Admin,
  controls: Controls,
  by?: string,
): Promise<Reloaded | AdminFailure> {
  const policy = controls.getPolicy()
  const settings = describeLive(admin, controls)
  const refused = await recordAction(admin, { operation: RELOAD_SETTINGS, ...(by && { target: by }) })
  if (refused) return refused
  const reloaded = await controls.reload()
  if (reloaded.problems) return reloaded
  const changes = [
    [SETTINGS_CHANGED, compare(settings, describeLive(admin, controls))],
    [POLICY_CHANGED, compare({ policy }, { policy: controls.getPolicy() })],
  ] as const
  for (const [operation, change] of changes) {
    const hasChanged = Object.keys(change.after ?? {}).length > 0
    const unrecorded = hasChanged ? await recordAction(admin, { operation, ...change }) : undefined
    if (unrecorded) return unrecorded
  }
  return reloaded
}

/** The settings that a reload may change, without secrets. The policy has a record of its own. */
function describeLive({ rules }: Admin, controls: Controls): Properties {
  const { passwords, secondFactor, providers } = rules
  const logLevel = controls.getLogLevel()
  return { logLevel, passwords, secondFactor, providers: providers.map(describeProvider) }
}

/** Everything about a provider decides who signs in, and as whom. Only a secret is left out; of files the paths are kept. */
function describeProvider(provider: LoginProvider): Properties {
  const { secrets } = describeTraits(provider)
  return { ...provider, ...Object.fromEntries(secrets.map(name => [name, undefined])) }
}

/** Sets the level of the log on all instances, until their next start. */
export async function setLogLevel(
  admin: Admin,
  controls: Controls,
  level: LogLevel,
): Promise<AdminFailure | undefined> {
  const change = { before: { level: controls.getLogLevel() }, after: { level } }
  const refused = await recordAction(admin, { operation: SET_LOG_LEVEL, target: level, ...change })
  if (refused) return refused
  await controls.setLogLevel(level)
  await announce(admin.store, 'log-level', level, admin.clock())
  return undefined
}

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
      return (await setLogLevel(admin, context.controls, level)) ?? { level: context.controls.getLogLevel() }
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
