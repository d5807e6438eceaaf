import type { IncomingMessage } from 'node:http'
import {
  authorizationOf,
  type Interaction,
  isPublic,
  type Misunderstood,
  parseInteraction,
  type Refused,
} from '../../fhir/index.ts'
import { createInterceptor } from '../interceptor.ts'
import { refuse } from '../refuse.ts'
import { withoutSlash } from '../token/check-claims.ts'
import { formText } from './body.ts'
import { type Configured, configuration } from './configuration.ts'
import type { HostOptions } from './host.ts'
import { type Exchange, judgeExchange } from './judge-exchange.ts'

export interface HostGuard {
  /** Judges the token alone, before the body is read. */
  admit(request: IncomingMessage, url: string): Promise<Refused | undefined>
  /** Judges the whole request, and has the answer held back and judged where that is needed. */
  guard(exchange: Exchange): Promise<Refused | undefined>
  /** The SMART configuration, where a request asks for it and the host leaves it to us. */
  configuration(request: IncomingMessage, url: string): Promise<Configured | Refused | undefined>
  /** Where that is on this server. */
  readonly configurationPath: string | undefined
  close(): void
}

/** One guard below all frameworks, so that the adapters have nothing to decide. */
export function hostGuard(options: HostOptions): HostGuard {
  const interceptor = createInterceptor(options)
  const basePath = withoutSlash(options.basePath ?? new URL(options.fhirBaseUrl).pathname)
  const base = { baseUrl: withoutSlash(options.fhirBaseUrl), basePath }
  void interceptor.start()

  const { smartConfiguration: told, onError } = options
  const configured =
    told === 'host'
      ? undefined
      : configuration({
          authUrl: withoutSlash(options.authUrl),
          given: told,
          fetch: options.fetch ?? ((address, init) => fetch(address, init)),
          clock: options.clock ?? Date.now,
          onError,
        })

  const callerOf = (request: IncomingMessage) => interceptor.authenticate(authorizationOf(request.rawHeaders))

  async function admit(request: IncomingMessage, url: string): Promise<Refused | undefined> {
    if (isPreflight(request) || isPublic(interactionOf(request, url, undefined, base))) return undefined
    const caller = await callerOf(request)
    return caller.allowed ? undefined : caller
  }

  async function guard(exchange: Exchange): Promise<Refused | undefined> {
    const { request, url } = exchange
    const interaction = interactionOf(request, url, formText(exchange.body), base)
    if (isPreflight(request) || isPublic(interaction)) return undefined
    const caller = await callerOf(request)
    if (!caller.allowed) return caller
    if (interaction.kind === 'misunderstood') return refuse(interaction)
    const refusal = await judgeExchange(exchange, interaction, caller.grant, interceptor.policy, options)
    return refusal && refuse(refusal)
  }

  // Whatever throws becomes a refusal.
  const safely = (judged: Promise<Refused | undefined>) =>
    judged.catch(error => {
      options.onError?.(error)
      return refuse({ kind: 'broken' })
    })
  return {
    admit: (request, url) => safely(admit(request, url)),
    guard: exchange => safely(guard(exchange)),
    async configuration(request, url) {
      const { kind } = interactionOf(request, url, undefined, base)
      return kind === 'smart-configuration' ? configured?.() : undefined
    },
    configurationPath: configured && `${basePath}/.well-known/smart-configuration`,
    close: () => interceptor.close(),
  }
}

// Contract 5.6: a browser asks before it has a token.
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

function interactionOf(
  { method = '', headers }: IncomingMessage,
  url: string,
  form: string | undefined,
  { baseUrl, basePath }: Base,
): Interaction | Misunderstood {
  const at = url.indexOf('?')
  const path = at < 0 ? url : url.slice(0, at)
  // Whatever is mounted here is guarded; what is not below the base is no FHIR request, and nothing else is let by.
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
