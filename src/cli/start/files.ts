import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { GatewayOptions } from '../../backends/upstream/index.ts'
import type { Settings } from '../../config/index.ts'
import type { TrustedIssuer } from '../../interceptor/index.ts'
import type { AccessPolicy } from '../../smart/index.ts'
import { CommandFailure } from '../command.ts'
import { readPolicy, readTrustedIssuers } from './trusted-issuers.ts'

/**
 * The contents of the files that settings name. They are read once, before anything is created, and are plain data:
 * all workers use the same contents, even one that starts after a file has changed.
 */
export interface StartFiles {
  readonly tls: Tls | undefined
  readonly policy: AccessPolicy | undefined
  readonly trustedIssuers: readonly TrustedIssuer[]
  readonly upstreamTls: UpstreamTls
}

export function readFiles(settings: Settings, isFhir: boolean): StartFiles {
  const tls = readTls(settings)
  if (!isFhir) return { tls, policy: undefined, trustedIssuers: [], upstreamTls: {} }
  const { upstreamUrl, upstream } = settings.fhir
  return {
    tls,
    policy: readPolicy(settings),
    trustedIssuers: readTrustedIssuers(settings),
    upstreamTls: upstreamUrl === undefined ? {} : readUpstreamTls(upstream),
  }
}

interface Tls {
  readonly cert: string
  readonly key: string
}

/** Reads and tests certificate and key once, so that a wrong file stops the start and not the first request. */
function readTls({ tlsCert, tlsKey }: Pick<Settings, 'tlsCert' | 'tlsKey'>): Tls | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  const tls = { cert: readPem('SMART_TLS_CERT', tlsCert), key: readPem('SMART_TLS_KEY', tlsKey) }
  try {
    createSecureContext(tls)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new CommandFailure(`Cannot use SMART_TLS_CERT with SMART_TLS_KEY: ${reason}`)
  }
  return tls
}

function readPem(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new CommandFailure(`Cannot read ${variable} ${path}: ${code}`)
  }
}

type UpstreamTls = NonNullable<GatewayOptions['upstreamTls']>

export function readUpstreamTls({ tlsCert, tlsKey, tlsCa }: Settings['fhir']['upstream']): UpstreamTls {
  return {
    ...(tlsCert !== undefined && { cert: readPem('SMART_FHIR_UPSTREAM_TLS_CERT', tlsCert) }),
    ...(tlsKey !== undefined && { key: readPem('SMART_FHIR_UPSTREAM_TLS_KEY', tlsKey) }),
    ...(tlsCa !== undefined && { ca: readPem('SMART_FHIR_UPSTREAM_TLS_CA', tlsCa) }),
  }
}
