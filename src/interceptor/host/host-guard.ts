import type { IncomingMessage } from 'node:http'
import { isFailure } from '../../core/index.ts'
import {
  failFor,
  getAuthorizationHeader,
  type Interaction,
  isPublic,
  type Misunderstood,
  misunderstand,
  parseInteraction,
  type Refused,
} from '../../fhir/index.ts'
import { createHostWork } from '../decision/check-request.ts'
import type { HostOptions } from '../interceptor.ts'
import { type Caller, createInterceptor } from '../interceptor.ts'
import { refuse } from '../refuse.ts'
import { removeTrailingSlash } from '../token/check-claims.ts'
import { checkExchange, type HostExchange, lacksParser, readForm } from './check-exchange.ts'
import { checkOptions } from './check-options.ts'
import { holdPreflight } from './check-response.ts'
import { type ConfigurationResponse, createConfigurationReader } from './configuration.ts'
import type { Observed } from './observe.ts'
import { createObserver } from './record-listeners.ts'
import { withoutQuotation } from './unreadable.ts'

export interface HostGuard {
  /** Checks the token, and whether a scope permits the request, before the body is read. */
  authenticate(exchange: Omit<HostExchange, 'body'>): Promise<Refused | undefined>
  /** Checks the whole request, and holds the host's response back if it must be checked too. */
  authorize(exchange: HostExchange): Promise<Refused | undefined>
  /** Records that the framework or its body parser could not read a request. Returns the refusal. */
  refuseUnreadable(request: IncomingMessage, unreadable: Refused): Refused
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
  checkOptions(options)
  const interceptor = createInterceptor(options)
  const basePath = removeTrailingSlash(options.basePath ?? new URL(options.fhirBaseUrl).pathname)
  const base = { baseUrl: removeTrailingSlash(options.fhirBaseUrl), basePath }
  void interceptor.start()

  const { smartConfiguration: given, onError } = options
  const readConfiguration =
    given === 'host'
      ? undefined
      : createConfigurationReader({
          // Without an auth server, a document is given.
          authUrl: removeTrailingSlash(options.authUrl ?? ''),
          given,
          fetch: options.fetch ?? ((url, init) => fetch(url, init)),
          clock: options.clock ?? Date.now,
          onError,
        })

  const { observeExchange, findObserved } = createObserver(options, base)

  /** Checks the token, then the request of its caller. Whatever the outcome, it is recorded. */
  async function guard(
    exchange: Omit<HostExchange, 'body'>,
    interaction: Interaction | Misunderstood,
    check: (caller: Caller, observed: Observed | undefined) => Promise<Refused | undefined>,
  ): Promise<Refused | undefined> {
    if (isPublic(interaction)) return undefined
    const observed = observeExchange(exchange, interaction)
    if (observed === 'no-room') return refuse(failFor('no-trail'))
    const caller = await interceptor.authenticate(getAuthorizationHeader(exchange.request.rawHeaders))
    if (!caller.allowed) {
      observed?.note({ rejectedGrant: caller.rejectedGrant })
      observed?.refuse(caller)
      return caller
    }
    observed?.note({ authenticated: caller })
    const refused = await check(caller, observed)
    return refused && (observed?.refuse(refused) ?? refused)
  }

  async function authenticate(exchange: Omit<HostExchange, 'body'>): Promise<Refused | undefined> {
    const { request, url } = exchange
    if (isPreflight(request)) return undefined
    const interaction = parseRequest(request, url, undefined, base)
    return guard(exchange, interaction, async caller => {
      if (isFailure(interaction)) return undefined
      const decision = caller.decide(interaction, createHostWork())
      return decision.allowed ? undefined : decision
    })
  }

  async function authorize(exchange: HostExchange): Promise<Refused | undefined> {
    const { request, url } = exchange
    if (isPreflight(request)) return void holdPreflight(exchange.response)
    const interaction = parseRequest(request, url, readForm(exchange.body), base)
    return guard(exchange, interaction, async ({ grant }, observed) => {
      if (isFailure(interaction)) return refuse(interaction)
      const { policy } = interceptor
      const refusal = await checkExchange(exchange, interaction, grant, policy, options, observed)
      if (refusal && lacksParser(exchange)) reportUnread(request, url)
      return refusal && refuse(refusal)
    })
  }

  let isReported = false
  /** Once: every write would be refused. */
  function reportUnread({ method }: IncomingMessage, url: string): void {
    if (!isReported)
      onError?.(
        new Error(
          `${method} ${url.split('?')[0]} was refused, because its body was not read. Mount express.json({ type: ['application/fhir+json', 'application/json'] }) before the interceptor.`,
        ),
      )
    isReported = true
  }

  const refuseOnError = (request: IncomingMessage, check: Promise<Refused | undefined>) =>
    check.catch(error => {
      options.onError?.(error)
      const refused = refuse(failFor('broken'))
      findObserved(request)?.refuse(refused)
      return refused
    })
  return {
    authenticate: exchange => refuseOnError(exchange.request, authenticate(exchange)),
    authorize: exchange => refuseOnError(exchange.request, authorize(exchange)),
    refuseUnreadable(request, unreadable) {
      findObserved(request)?.refuse(withoutQuotation(unreadable))
      return unreadable
    },
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
  if (path !== basePath && !path.startsWith(`${basePath}/`))
    return misunderstand('path-outside-named-base', { base: basePath })
  return parseInteraction({
    method,
    baseUrl,
    path: path.slice(basePath.length),
    query: at < 0 ? '' : url.slice(at + 1),
    headers,
    form,
  })
}
