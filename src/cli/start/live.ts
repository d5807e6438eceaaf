import { isDeepStrictEqual } from 'node:util'
import type { Controls, Reloaded } from '../../auth/index.ts'
import type { UpstreamTls } from '../../backends/upstream/index.ts'
import {
  type Configuration,
  type LogLevel,
  listChangedSettings,
  type Settings,
  SettingsError,
} from '../../config/index.ts'
import { describeError } from '../../core/index.ts'
import { type AccessPolicy, createUserFilter, type EnforcementPolicy } from '../../smart/index.ts'
import { type Logger, setLogLevel } from '../../web/http/index.ts'
import { readPolicy, readTls, readUpstreamTls, type Tls } from './files.ts'
import { reloads } from './process-metrics.ts'

/** The part of the configuration that may change while the servers run. Plain data, which the supervisor sends to the workers. */
export interface LiveSettings {
  readonly logLevel: LogLevel
  readonly login: Settings['login']
  readonly policy: AccessPolicy | undefined
  readonly tls: Tls | undefined
  readonly upstreamTls: UpstreamTls
}

/** Names of settings that `readLive` reads. The others need a restart. */
const LIVE = /^smart\.(?:login\.|fhir\.policy-file$|server\.tls-|server\.log-level$|fhir\.upstream-tls-)/

/** Reads and tests every file that the settings name, so that a wrong one has no effect. */
export function readLive(settings: Settings, names: readonly string[]): LiveSettings {
  const hasPolicy = names.includes('fhir') || names.includes('auth')
  return {
    logLevel: settings.logLevel,
    login: settings.login,
    policy: hasPolicy ? readPolicy(settings) : undefined,
    ...readCertificates(settings, names),
  }
}

type Certificates = Pick<LiveSettings, 'tls' | 'upstreamTls'>

function readCertificates(settings: Settings, names: readonly string[]): Certificates {
  const { upstreamUrl, upstream } = settings.fhir
  const hasUpstream = names.includes('fhir') && upstreamUrl !== undefined
  return { tls: readTls(settings), upstreamTls: hasUpstream ? readUpstreamTls(upstream) : {} }
}

/** The live settings of a process. */
export class LiveState {
  #current: LiveSettings
  readonly #listeners: ((current: LiveSettings, before: LiveSettings) => unknown)[] = []

  constructor(initial: LiveSettings) {
    this.#current = initial
  }

  get current(): LiveSettings {
    return this.#current
  }

  onChange(listener: (current: LiveSettings, before: LiveSettings) => unknown): void {
    this.#listeners.push(listener)
  }

  /** Resolves when every listener has applied the change. */
  async change(part: Partial<LiveSettings>): Promise<void> {
    const before = this.#current
    this.#current = { ...before, ...part }
    await Promise.all(this.#listeners.map(listener => listener(this.#current, before)))
  }
}

export function followLogLevel(live: LiveState, logger: Logger): void {
  live.onChange(({ logLevel }) => setLogLevel(logger, logLevel))
}

/** The filter of the policy at the time of the call. */
export function createLiveFilter(live: LiveState): NonNullable<EnforcementPolicy['userFilter']> {
  const create = () => live.current.policy && createUserFilter(live.current.policy)
  let filter = create()
  live.onChange(() => {
    filter = create()
  })
  return (user, type, permission) => filter?.(user, type, permission) ?? 'everything'
}

export interface ReadSettings {
  readonly configuration: Configuration
  readonly live: LiveSettings
}

interface ControlOptions {
  readonly names: readonly string[]
  readonly live: LiveState
  readonly initial: Configuration
  /** Throws if a setting or a file is invalid. */
  readonly read: () => ReadSettings
  readonly logger: Logger
}

export interface LiveControls extends Controls {
  /** Reads the certificates again. If they are invalid, those in effect stay. */
  refreshCertificates(): Promise<void>
}

/** Changes the live settings: at SIGHUP, when certificates are replaced, and for administrators. */
export function createControls({ names, live, initial, read, logger }: ControlOptions): LiveControls {
  let last = initial
  let refused: string | undefined
  return {
    getPolicy: () => live.current.policy,
    getLogLevel: () => live.current.logLevel,
    async setLogLevel(logLevel) {
      await live.change({ logLevel })
      logger.warn({ logLevel }, 'Log level changed')
    },
    async reload(): Promise<Reloaded> {
      try {
        const { configuration, live: next } = read()
        const changed = listChangedSettings(last, configuration)
        const hasLevel = changed.includes('smart.server.log-level')
        const before = live.current
        await live.change({ ...next, ...(!hasLevel && { logLevel: live.current.logLevel }) })
        last = configuration
        const needRestart = listChangedSettings(initial, configuration).filter(name => !LIVE.test(name))
        reloads.add(['settings', 'applied'])
        const inEffect = [
          ...changed.filter(isNamed).map(name => `${name}: changed`),
          ...listChanges(before, live.current),
        ]
        logger.warn({ changed: inEffect, needRestart }, 'Settings reloaded')
        return { changed: inEffect, needRestart }
      } catch (error) {
        const problems = listProblems(error)
        reloads.add(['settings', 'refused'])
        logger.error({ problems }, 'Cannot reload the settings: those in effect stay')
        return { problems }
      }
    },
    async refreshCertificates() {
      try {
        const next = readCertificates(last.settings, names)
        const { tls, upstreamTls } = live.current
        refused = undefined
        if (isDeepStrictEqual(next, { tls, upstreamTls })) return
        await live.change(next)
        reloads.add(['certificates', 'applied'])
        logger.warn('Certificates replaced')
      } catch (error) {
        const [problem] = listProblems(error)
        // An error that lasts is logged once.
        if (problem !== refused) {
          reloads.add(['certificates', 'refused'])
          logger.error({ problem }, 'Cannot use the new certificates: those in effect stay')
        }
        refused = problem
      }
    },
  }
}

/** Whether a changed setting is in effect, and `listChanges` does not say more about it. */
function isNamed(name: string): boolean {
  return LIVE.test(name) && name !== 'smart.login.providers'
}

/** The providers and files that changed, by name: a value may be a secret. */
function listChanges(before: LiveSettings, after: LiveSettings): readonly string[] {
  const files = [
    ['policy', before.policy, after.policy],
    ['certificates of the servers', before.tls, after.tls],
    ['certificates for the upstream', before.upstreamTls, after.upstreamTls],
  ] as const
  const find = ({ login }: LiveSettings, id: string) => login.providers.find(provider => provider.id === id)
  const ids = new Set([...before.login.providers, ...after.login.providers].map(({ id }) => id))
  const providers = [...ids].map(id => [`sign-in provider ${id}`, find(before, id), find(after, id)] as const)
  return [...providers, ...files].flatMap(([name, old, now]) =>
    isDeepStrictEqual(old, now) ? [] : `${name}: ${describeChange(old, now)}`,
  )
}

function describeChange(before: unknown, after: unknown): string {
  if (before === undefined) return 'added'
  return after === undefined ? 'removed' : 'changed'
}

/** How soon the servers use a replaced certificate. */
const CERTIFICATES_EVERY_MS = 5_000

/** Compares contents: mounted secrets are replaced by links, whose times say little. */
export function watchCertificates(controls: LiveControls): void {
  setInterval(() => void controls.refreshCertificates(), CERTIFICATES_EVERY_MS).unref()
}

function listProblems(error: unknown): readonly string[] {
  if (error instanceof SettingsError) return error.problems
  return [describeError(error)]
}
