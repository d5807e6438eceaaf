import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { Settings } from '../../config/index.ts'
import type { TrustedIssuer } from '../../interceptor/index.ts'
import type { AccessPolicy } from '../../smart/index.ts'
import { CommandFailure } from '../command.ts'
import { readUpstreamTls } from './gateway.ts'
import { readPolicy, readTrustedIssuers } from './trusted-issuers.ts'

/**
 * The contents of the files that settings name. They are read once, before anything is created, and are plain data:
 * all workers use the same contents, even one that starts after a file has changed.
 */
export interface StartFiles {
  readonly tls: Tls | undefined
  readonly policy: AccessPolicy | undefined
  readonly trustedIssuers: readonly TrustedIssuer[]
  readonly upstreamTls: ReturnType<typeof readUpstreamTls>
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
  readonly cert: Buffer
  readonly key: Buffer
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

function readPem(variable: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new CommandFailure(`Cannot read ${variable} ${path}: ${code}`)
  }
}
