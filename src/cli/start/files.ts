import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import type { UpstreamTls } from '../../backends/upstream/index.ts'
import type { Settings } from '../../config/index.ts'
import { CommandFailure } from '../command.ts'

export interface Tls {
  readonly cert: string
  readonly key: string
}

/** Reads and tests certificate and key once, so that a wrong file stops the start and not the first request. */
export function readTls({ tlsCert, tlsKey }: Pick<Settings, 'tlsCert' | 'tlsKey'>): Tls | undefined {
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

export function readFeedTls({ tlsCert, tlsKey, tlsCa }: Settings['auditFeeds']): UpstreamTls {
  return {
    ...(tlsCert !== undefined && { cert: readPem('SMART_AUDIT_TLS_CERT', tlsCert) }),
    ...(tlsKey !== undefined && { key: readPem('SMART_AUDIT_TLS_KEY', tlsKey) }),
    ...(tlsCa !== undefined && { ca: readPem('SMART_AUDIT_TLS_CA', tlsCa) }),
  }
}

export function readUpstreamTls({ tlsCert, tlsKey, tlsCa }: Settings['fhir']['upstream']): UpstreamTls {
  return {
    ...(tlsCert !== undefined && { cert: readPem('SMART_FHIR_UPSTREAM_TLS_CERT', tlsCert) }),
    ...(tlsKey !== undefined && { key: readPem('SMART_FHIR_UPSTREAM_TLS_KEY', tlsKey) }),
    ...(tlsCa !== undefined && { ca: readPem('SMART_FHIR_UPSTREAM_TLS_CA', tlsCa) }),
  }
}
