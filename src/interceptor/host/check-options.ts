import { findNearest, isRecord } from '../../core/index.ts'
import type { HostOptions } from '../interceptor.ts'

const NAMES = {
  authUrl: true,
  trustedIssuers: true,
  fhirBaseUrl: true,
  contexts: true,
  searchPermission: true,
  userFilter: true,
  protectedTypes: true,
  relationContexts: true,
  careTeamsGiveAccess: true,
  operations: true,
  revoked: true,
  onError: true,
  onUnusableKeySet: true,
  fetch: true,
  clock: true,
  verify: true,
  basePath: true,
  smartConfiguration: true,
  stored: true,
  versionAccess: true,
  appliesAccess: true,
  onDecision: true,
  trail: true,
} satisfies Record<keyof HostOptions, true>

const CONTEXTS: readonly string[] = ['patient', 'user', 'system']

/** Throws for options that the compiler refuses: a host in JavaScript has none, and a misspelt one would change nothing. */
export function checkOptions(options: HostOptions): void {
  if (!isRecord(options)) throw new TypeError('Expected options: { authUrl, fhirBaseUrl }')
  for (const name of Object.keys(options))
    if (!Object.hasOwn(NAMES, name)) throw new TypeError(`Unknown option ${name}${suggest(name)}`)
  const { authUrl, trustedIssuers = [], smartConfiguration } = options
  if (authUrl !== undefined || trustedIssuers.length === 0) checkUrl('authUrl', authUrl)
  else if (smartConfiguration === undefined)
    throw new TypeError('Option smartConfiguration: without authUrl, expected a document, or "host"')
  checkUrl('fhirBaseUrl', options.fhirBaseUrl)
  for (const context of options.contexts ?? [])
    if (!CONTEXTS.includes(context))
      throw new TypeError(`Option contexts: expected ${CONTEXTS.join(', ')}, not ${JSON.stringify(context)}`)
}

function suggest(name: string): string {
  const close = findNearest(name, Object.keys(NAMES))
  return close === undefined ? '' : `: did you mean ${close}?`
}

function checkUrl(name: string, value: unknown): void {
  if (typeof value !== 'string' || !URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol))
    throw new TypeError(
      `Option ${name}: expected a URL with http or https, not ${JSON.stringify(value) ?? 'nothing'}`,
    )
}
