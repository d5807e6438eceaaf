import type { IncomingMessage } from 'node:http'
import { isFailure } from '../../core/index.ts'
import {
  getAuthorizationHeader,
  type Interaction,
  isPublic,
  type Misunderstood,
  parseInteraction,
  type Refused,
} from '../../fhir/index.ts'
import type { HostOptions } from '../interceptor.ts'
import { createInterceptor } from '../interceptor.ts'
import { refuse } from '../refuse.ts'
import { removeTrailingSlash } from '../token/check-claims.ts'
import { checkExchange, type Exchange, readForm } from './check-exchange.ts'
import { holdPreflight } from './check-response.ts'
import { type ConfigurationResponse, createConfigurationReader } from './configuration.ts'

export interface HostGuard {
  /** Checks the token, and whether a scope permits the request, before the body is read. */
  authenticate(request: IncomingMessage, url: string): Promise<Refused | undefined>
  /** Checks the whole request, and holds the host's response back if it must be checked too. */
  authorize(exchange: Exchange): Promise<Refused | undefined>
  /** The SMART configuration, if the request asks for it and the host does not serve its own. */
  readConfiguration(
    request: IncomingMessage,
    url: string,
  ): Promise<ConfigurationResponse | Refused | undefined>
  readonly configurationPath: string | undefined
  close(): void
}

/** The framework-independent part of the adapters. */
export function createHostGuard(options: HostOptions): HostGuard {
  const interceptor = createInterceptor(options)
  const basePath = removeTrailingSlash(options.basePath ?? new URL(options.fhirBaseUrl).pathname)
  const base = { baseUrl: removeTrailingSlash(options.fhirBaseUrl), basePath }
  void interceptor.start()

  const { smartConfiguration: given, onError } = options
  const readConfiguration =
    given === 'host'
      ? undefined
      : createConfigurationReader({
          authUrl: removeTrailingSlash(options.authUrl),
          given,
          fetch: options.fetch ?? ((url, init) => fetch(url, init)),
          clock: options.clock ?? Date.now,
          onError,
        })

  const findCaller = (request: IncomingMessage) =>
    interceptor.authenticate(getAuthorizationHeader(request.rawHeaders))

  async function authenticate(request: IncomingMessage, url: string): Promise<Refused | undefined> {
    const interaction = parseRequest(request, url, undefined, base)
    if (isPreflight(request) || isPublic(interaction)) return undefined
    const caller = await findCaller(request)
    if (!caller.allowed || isFailure(interaction)) return caller.allowed ? undefined : caller
    const decision = caller.decide(interaction)
    return decision.allowed ? undefined : decision
  }

  async function authorize(exchange: Exchange): Promise<Refused | undefined> {
    const { request, url } = exchange
    if (isPreflight(request)) return void holdPreflight(exchange.response)
    const interaction = parseRequest(request, url, readForm(exchange.body), base)
    if (isPublic(interaction)) return undefined
    const caller = await findCaller(request)
    if (!caller.allowed) return caller
    if (isFailure(interaction)) return refuse(interaction)
    const refusal = await checkExchange(exchange, interaction, caller.grant, interceptor.policy, options)
    return refusal && refuse(refusal)
  }

  const refuseOnError = (check: Promise<Refused | undefined>) =>
    check.catch(error => {
      options.onError?.(error)
      return refuse({ kind: 'broken' })
    })
  return {
    authenticate: (request, url) => refuseOnError(authenticate(request, url)),
    authorize: exchange => refuseOnError(authorize(exchange)),
    async readConfiguration(request, url) {
      const { kind } = parseRequest(request, url, undefined, base)
      return kind === 'smart-configuration' ? readConfiguration?.() : undefined
    },
    configurationPath: readConfiguration && `${basePath}/.well-known/smart-configuration`,
    close: () => interceptor.close(),
  }
}

// A browser sends a preflight request without the token.
function isPreflight({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  )
}

interface Base {
  readonly baseUrl: string
  readonly basePath: string
}

function parseRequest(
  { method = '', headers }: IncomingMessage,
  url: string,
  form: string | undefined,
  { baseUrl, basePath }: Base,
): Interaction | Misunderstood {
  const at = url.indexOf('?')
  const path = at < 0 ? url : url.slice(0, at)
  // The adapter guards every request. One that is not below the base is not a FHIR request, and is refused.
  const below =
    path === basePath || path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : 'elsewhere'
  return parseInteraction({
    method,
    baseUrl,
    path: below,
    query: at < 0 ? '' : url.slice(at + 1),
    headers,
    form,
  })
}
