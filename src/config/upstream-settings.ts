/** The FHIR server behind the gateway, beside its address. Used where `upstreamUrl` is set. */
export interface UpstreamSettings {
  readonly aliases: readonly string[]
  readonly narrowing: 'auto' | 'compartment' | 'parameter'
  readonly operations: readonly string[]
  readonly searchParameters: readonly string[]
  readonly timeoutSeconds: number
  readonly responseLimitMegabytes: number
  readonly connections: number
  readonly auth: 'none' | 'bearer' | 'basic' | 'client-credentials'
  readonly token: string | undefined
  readonly username: string | undefined
  readonly password: string | undefined
  readonly tokenUrl: string | undefined
  readonly clientId: string | undefined
  readonly clientSecret: string | undefined
  readonly scope: string | undefined
  readonly tlsCert: string | undefined
  readonly tlsKey: string | undefined
  readonly tlsCa: string | undefined
}

/** What each way of showing itself to the upstream needs. */
const NEEDED = {
  none: [],
  bearer: [['token', 'SMART_FHIR_UPSTREAM_TOKEN']],
  basic: [
    ['username', 'SMART_FHIR_UPSTREAM_USERNAME'],
    ['password', 'SMART_FHIR_UPSTREAM_PASSWORD'],
  ],
  'client-credentials': [
    ['tokenUrl', 'SMART_FHIR_UPSTREAM_TOKEN_URL'],
    ['clientId', 'SMART_FHIR_UPSTREAM_CLIENT_ID'],
    ['clientSecret', 'SMART_FHIR_UPSTREAM_CLIENT_SECRET'],
  ],
} as const satisfies Record<UpstreamSettings['auth'], readonly (readonly [keyof UpstreamSettings, string])[]>

/** Why a gateway must not start with these settings, one phrase each. */
export function findUpstreamProblems(upstream: UpstreamSettings): readonly string[] {
  const missing = NEEDED[upstream.auth].filter(([key]) => upstream[key] === undefined)
  const { tlsCert, tlsKey } = upstream
  return [
    ...missing.map(([, variable]) => `SMART_FHIR_UPSTREAM_AUTH=${upstream.auth} needs ${variable}`),
    ...(tlsCert !== undefined && tlsKey === undefined
      ? ['SMART_FHIR_UPSTREAM_TLS_CERT needs SMART_FHIR_UPSTREAM_TLS_KEY']
      : []),
    ...(tlsKey !== undefined && tlsCert === undefined
      ? ['SMART_FHIR_UPSTREAM_TLS_KEY needs SMART_FHIR_UPSTREAM_TLS_CERT']
      : []),
  ]
}
