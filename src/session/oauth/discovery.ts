import type { ServerMetadata } from 'openid-client'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { failApp } from '../../app-reasons/index.ts'
import { createCachedFetch } from '../../cache/index.ts'
import { DAY_MS, isFailure, MINUTE_MS } from '../../core/index.ts'
import { findFaults } from '../../endpoint/index.ts'
import { toPlain } from '../../fhir/index.ts'
import { fetchJson, type Result } from '../failure.ts'

const SmartConfiguration = Type.Object({
  issuer: Type.Optional(Type.String()),
  jwks_uri: Type.Optional(Type.String()),
  authorization_endpoint: Type.String({ minLength: 1 }),
  token_endpoint: Type.String({ minLength: 1 }),
  revocation_endpoint: Type.Optional(Type.String()),
  token_endpoint_auth_methods_supported: Type.Optional(Type.Array(Type.String())),
  authorization_response_iss_parameter_supported: Type.Optional(Type.Boolean()),
  id_token_signing_alg_values_supported: Type.Optional(Type.Array(Type.String())),
})

/**
 * Returns undefined if the document names no auth server, or would send codes and tokens of an https base over
 * plain http.
 */
function readSmartConfiguration(fhirBaseUrl: string, document: unknown): ServerMetadata | undefined {
  if (!Value.Check(SmartConfiguration, document)) return undefined
  const endpoints = resolveEndpoints(fhirBaseUrl, document)
  const {
    issuer = fhirBaseUrl,
    authorization_response_iss_parameter_supported = false,
    token_endpoint_auth_methods_supported: methods,
    id_token_signing_alg_values_supported: algorithms,
  } = document
  return (
    endpoints && {
      issuer,
      ...endpoints,
      authorization_response_iss_parameter_supported,
      ...(methods && { token_endpoint_auth_methods_supported: methods }),
      ...(algorithms && { id_token_signing_alg_values_supported: algorithms }),
    }
  )
}

function describeConfigurationFault(fhirBaseUrl: string, document: unknown): string {
  const [fault] = findFaults(SmartConfiguration, document)
  if (fault) return `${fault.name || 'document'}: ${fault.text}`
  const scheme = fhirBaseUrl.startsWith('https:') ? 'an https URL' : 'an http or https URL'
  return `an endpoint or jwks_uri: Expected ${scheme}`
}

const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'revocation_endpoint', 'jwks_uri'] as const

/** Older servers use relative URLs. They are relative to the FHIR base. */
function resolveEndpoints(
  fhirBaseUrl: string,
  document: Static<typeof SmartConfiguration>,
): Record<string, string> | undefined {
  const secure = fhirBaseUrl.startsWith('https:')
  const resolved: Record<string, string> = {}
  for (const name of ENDPOINTS) {
    const text = document[name]
    if (text === undefined) continue
    const url = URL.parse(text, `${fhirBaseUrl}/`)
    if (url === null || !(url.protocol === 'https:' || (!secure && url.protocol === 'http:')))
      return undefined
    resolved[name] = url.href
  }
  return resolved
}

const FRESH_MS = 5 * MINUTE_MS
const STALE_MS = DAY_MS

/** Call it only with a configured FHIR base: it sends a request to that base. */
export interface Discovery {
  find(fhirBaseUrl: string): Promise<Result<ServerMetadata>>
  /** The UserInfo endpoint of the issuer of a session, if it has one. */
  findUserinfo(session: Issued): Promise<string | undefined>
}

interface Issued {
  readonly issuer: string
  readonly fhirBaseUrl: string
}

/**
 * Reads `{iss}/.well-known/smart-configuration` and caches it for 5 minutes, and longer while the server is
 * unreachable.
 */
export function createDiscovery(options: {
  readonly fetch: typeof fetch
  readonly clock: () => number
  readonly timeoutMs: number
}): Discovery {
  const cache = createCachedFetch<Found>({
    clock: options.clock,
    async fetch(fhirBaseUrl, previous) {
      const result = await readConfiguration(fhirBaseUrl, options)
      const now = options.clock()
      if (!isFailure(result)) return { value: { result, at: now }, freshForMs: FRESH_MS }
      const isUsable = previous && !isFailure(previous.value.result) && now - previous.value.at < STALE_MS
      return { value: isUsable ? previous.value : { result, at: now }, freshForMs: 0 }
    },
  })
  const userinfo = createCachedFetch<string | undefined>({
    clock: options.clock,
    fetch: async issuer => ({ value: await readUserinfoUrl(issuer, options), freshForMs: FRESH_MS }),
  })
  return {
    find: async fhirBaseUrl => (await cache.get(fhirBaseUrl)).result,
    findUserinfo: async ({ issuer, fhirBaseUrl }) => {
      const url = await userinfo.get(issuer)
      // A token of an https base is never sent over plain http.
      return fhirBaseUrl.startsWith('https:') && !url?.startsWith('https:') ? undefined : url
    },
  }
}

const OpenidConfiguration = Type.Object({ issuer: Type.String(), userinfo_endpoint: Type.String() })

/** OpenID Connect Discovery, 4: the document names the issuer that it describes. */
async function readUserinfoUrl(issuer: string, options: FetchOptions): Promise<string | undefined> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const answer = await fetchJson(options.fetch, url, { ...options, headers: { accept: 'application/json' } })
  const document = isFailure(answer) ? undefined : toPlain(answer.json)
  return Value.Check(OpenidConfiguration, document) && document.issuer === issuer
    ? URL.parse(document.userinfo_endpoint)?.href
    : undefined
}

interface FetchOptions {
  readonly fetch: typeof globalThis.fetch
  readonly timeoutMs: number
}

interface Found {
  readonly result: Result<ServerMetadata>
  readonly at: number
}

async function readConfiguration(
  fhirBaseUrl: string,
  { fetch, timeoutMs }: FetchOptions,
): Promise<Result<ServerMetadata>> {
  const answer = await fetchJson(fetch, `${fhirBaseUrl}/.well-known/smart-configuration`, {
    timeoutMs,
    headers: { accept: 'application/json' },
  })
  if (isFailure(answer)) return answer
  if (answer.status >= 500) return failApp('records-unreachable')
  const document = toPlain(answer.json)
  const metadata = answer.status === 200 ? readSmartConfiguration(fhirBaseUrl, document) : undefined
  if (metadata) return metadata
  return failApp('records-response-invalid', {
    problem: 'no usable smart-configuration',
    check:
      answer.status === 200
        ? `smart-configuration ${describeConfigurationFault(fhirBaseUrl, document)}`
        : `smart-configuration returned status ${answer.status}`,
  })
}
