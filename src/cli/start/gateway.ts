import type { FastifyInstance } from 'fastify'
import type { GatewayOptions, UpstreamAuth } from '../../backends/upstream/index.ts'
import { ensureSecret, type Settings } from '../../config/index.ts'
import { createSealer } from '../../store/index.ts'
import { findOfferedOperations } from './files.ts'
import type { Parts } from './parts.ts'

export async function openGateway(
  { settings, live, serialize }: Parts,
  upstreamUrl: string,
  given: Omit<GatewayOptions, 'baseUrl' | 'upstreamUrl'>,
): Promise<FastifyInstance> {
  const { createGateway } = await import('../../backends/upstream/index.ts')
  const { upstream } = settings.fhir
  return createGateway({
    ...given,
    baseUrl: settings.fhirBaseUrl,
    upstreamUrl,
    upstreamAliases: upstream.aliases,
    auth: readUpstreamAuth(upstream),
    upstreamTls: () => live.current.upstreamTls,
    narrowing: upstream.narrowing,
    profile: upstream.profile,
    searchCache: upstream.searchCache,
    operations: findOfferedOperations(settings),
    searchParameters: upstream.searchParameters,
    timeoutMs: upstream.timeoutSeconds * 1000,
    responseLimit: upstream.responseLimitMegabytes * 1024 * 1024,
    connections: upstream.connections,
    relaysExports: upstream.export === 'relay',
    sealer: createSealer(ensureSecret(settings)),
    ...(serialize && { serialize }),
  })
}

type Upstream = Settings['fhir']['upstream']

// Missing settings have already stopped the start (config/start-problems.ts).
export function readUpstreamAuth({
  auth,
  token = '',
  username = '',
  password = '',
  ...client
}: Upstream): UpstreamAuth {
  switch (auth) {
    case 'none':
      return { kind: 'none' }
    case 'bearer':
      return { kind: 'bearer', token }
    case 'basic':
      return { kind: 'basic', username, password }
    case 'client-credentials': {
      const { tokenUrl = '', clientId = '', clientSecret = '', scope } = client
      return { kind: 'client-credentials', tokenUrl, clientId, clientSecret, scope }
    }
  }
}
