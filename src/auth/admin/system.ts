import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { LogLevel } from '../../config/index.ts'
import { isRecord } from '../../fhir/index.ts'
import { type CheckResult, getGatherer, version } from '../../web/index.ts'
import type { AuthContext, Reloaded } from '../context.ts'
import { type Admin, AdminFailure, recordAct } from './act.ts'
import { announce } from './runtime-values.ts'

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
  return isRecord(value) && typeof value.name === 'string' && typeof value.ok === 'boolean'
}

/** The versions and settings of the servers. */
export function describeSystem({ settings, store, providers, controls, clock }: AuthContext) {
  const { fhir, audit, lab } = settings
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
    lab,
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
  await recordAct(admin, 'settings reload')
  const reloaded = await controls.reload()
  if (reloaded.problems) return new AdminFailure('conflict', reloaded.problems.join('; '))
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
  await recordAct(admin, `log-level set ${level}`, change)
  await controls.setLogLevel(level)
  await announce(admin.store, 'log-level', level, admin.clock())
}
